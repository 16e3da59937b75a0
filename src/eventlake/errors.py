"""The errors a person or a scheduler acts on, each with a stable code and a next step.

Bad input *data* is not an error: it becomes a rejected line or a rescued value.

    Error                 code, message, hint, on
    ├── UsageError        the command line makes no sense (exit 2)
    ├── SetupError        someone must act: setting, permission, missing bucket
    ├── InputError        the file, source or argument the user named cannot be used
    ├── TransientError    the store was busy, slow or away: the same call may work later
    └── StateError        our own records disagree: stop, touch nothing, report
"""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """What was attempted on which object, a stable code, and what to do next."""

    exit_code: ClassVar[int] = 1

    def __init__(self, code: str, message: str, hint: str = "", on: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.on = on

    def __reduce__(self) -> tuple[type[Error], tuple[str, str, str, str | None]]:
        # Errors cross from Spark workers to the driver; the default would lose all but the message.
        return type(self), (self.code, self.message, self.hint, self.on)

    def __str__(self) -> str:
        on = f" ({self.on})" if self.on else ""
        return f"{self.code}: {self.message}{on}"


class UsageError(Error):
    """The command line makes no sense."""

    exit_code = 2


class SetupError(Error):
    """Someone must act before this can work: a setting, a permission, a missing bucket."""


class InputError(Error):
    """The file, source or argument the user named cannot be used."""


class TransientError(Error):
    """The store was busy, slow or away; the same call may work later."""


class StateError(Error):
    """Our own records disagree; nothing was touched."""


# Every code in use: its class and what it means in one line. The reference page is made from it.
ERRORS: dict[str, tuple[type[Error], str]] = {
    "WRONG_USAGE": (UsageError, "The command line has an unknown command, option or value."),
    "INVALID_SETTING": (SetupError, "A setting is unknown, of the wrong type or out of range."),
    "SETTINGS_NOT_FOUND": (SetupError, "The settings file that was named does not exist."),
    "SETTINGS_EXIST": (SetupError, "`init` found a settings file and does not overwrite it."),
    "MISSING_DEPENDENCY": (SetupError, "A setting needs a Python package that is not installed."),
    "NO_CREDENTIALS": (SetupError, "No credentials for the store were found anywhere."),
    "INSUFFICIENT_PERMISSIONS": (SetupError, "The store refused the operation."),
    "BUCKET_NOT_FOUND": (SetupError, "The bucket or container of the lake does not exist."),
    "STORE_FULL": (SetupError, "The disk or quota under the lake is full."),
    "STORE_REFUSED": (SetupError, "The store answered that the request itself is not acceptable."),
    "STORE_UNAVAILABLE": (TransientError, "The store could not be reached or did not answer."),
    "STORE_THROTTLED": (TransientError, "The store asked us to slow down."),
    "OBJECT_NOT_FOUND": (StateError, "An object that our records name is not in the lake."),
    "CORRUPT_RECORD": (StateError, "One of our own records in the lake cannot be understood."),
    "SOURCE_EXISTS": (InputError, "A source with this slug or id exists already."),
    "SOURCE_NOT_FOUND": (InputError, "There is no source with this slug or id."),
    "SOURCE_DISABLED": (InputError, "The source is disabled and takes no events."),
    "INVALID_SOURCE": (InputError, "A slug, id or name of a source is not usable."),
    "INPUT_NOT_FOUND": (InputError, "The input file or folder does not exist."),
    "INPUT_UNREADABLE": (InputError, "The input exists but could not be read."),
    "INPUT_EMPTY": (InputError, "The input holds no event files or no lines."),
    "INPUT_IS_JSON_ARRAY": (InputError, "The input is one JSON array instead of one event a line."),
    "INPUT_IS_PRETTY_JSON": (InputError, "The input is JSON spread over lines, not one per line."),
    "INPUT_NOT_NDJSON": (InputError, "The input is no newline-delimited JSON."),
    "INPUT_INCOMPLETE": (InputError, "Some of the inputs could not be staged; the others were."),
    "LAYOUT_CHANGED": (SetupError, "A setting that shapes tables differs from the stored data."),
    "NO_JAVA": (SetupError, "No Java that Spark can use was found."),
    "SPARK_START": (SetupError, "Spark did not start."),
    "TABLE_NOT_FOUND": (InputError, "There is no such table."),
    "NOT_MOVED": (
        StateError,
        "Files could not be put into place yet.",
    ),
    "QUERY_FAILED": (InputError, "The query could not be run."),
    "INTERNAL": (StateError, "Something unforeseen happened: a bug in Eventlake."),
}
