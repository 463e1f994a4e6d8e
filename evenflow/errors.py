"""Errors that a user can act on: what is wrong, and what to do about it."""


class EvenflowError(Exception):
    """Base of every error that evenflow raises on purpose.

    `hint` says what to do. The command line prints it below the message.
    `at_once`: whether the process ends without waiting for threads of clients. A command that has begun
    nothing may say so.
    """

    at_once = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n  -> {hint}")
        self.message = message
        self.hint = hint


class ConfigError(EvenflowError):
    """A setting, an option or a word of a command is missing, unknown or out of range."""


class DisorderError(EvenflowError):
    """A tuple is older than the stream's allowed disorder permits. Sort the stream or raise the bound."""


class IncompatibleStateError(EvenflowError):
    """State on disk or in Kafka belongs to another query, topic or version.
    It is refused and never reinterpreted.
    """


class DataLossError(EvenflowError):
    """Records that are needed to continue are gone, because the topic was trimmed or recreated."""


class ProtocolError(EvenflowError):
    """A frame, blob or marker is not valid, because of a bug or a foreign record. Processing stops."""


class FencedError(EvenflowError):
    """Another process has taken over what this one was doing. This one must not be restarted against it.

    exit_code: status of a process that ends with this error.
    """

    exit_code = 3


class ServiceError(EvenflowError):
    """A service that evenflow needs (broker, Java, topic) is missing, unreachable or refuses us."""
