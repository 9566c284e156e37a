"""Public test suites of other libraries as clients of tilewright.compat.

    python -m tilewright.testing.peers fa3 --folder flash-attention --log fa3.json

The suites are run as they were published, from a folder of the user's; none is part of this package.
"""
