"""What keeps the virtual machine from starting, or from ending as it should."""


class Trouble(Exception):
    """The message says what is wrong and what to do about it."""
