"""The worker process of one party: ``python -m keyquorum.parties``, see :func:`keyquorum.parties.worker.main`."""

import sys

from .worker import main

sys.exit(main())
