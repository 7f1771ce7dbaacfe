"""A served committee of which any t + 1 live parties decrypt: a party that dies is replaced by another one.

Modules: `choice` (which parties serve next: pure), `presence` (who is live), `daemon` (one party), `receiver` (who asks all of them),
`options`.
"""
