"""A long-running committee: parties are daemons, and a receiver is a client with a channel to each of them."""
