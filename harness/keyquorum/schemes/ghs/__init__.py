"""GHS: keys of BGV modulo cyclotomic polynomials of any order, with which AES was evaluated."""
