"""The description of the C interface (*.txt), and what is written from it."""
