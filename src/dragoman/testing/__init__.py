"""A public kit for tests: a node without a socket, a clock that is turned by hand, faults on demand."""

from .local import local_app, local_node

__all__ = ["local_app", "local_node"]
