"""A long-running committee: parties as daemons, receivers as clients that talk to each of them over a channel of their own."""
