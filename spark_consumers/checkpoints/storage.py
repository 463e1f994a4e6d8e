"""Turns Java's report of a disk or an object store that failed into an error that says what to do."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from evenflow.errors import ServiceError

_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_GOES_ON = "nothing is lost: started again, the application goes on exactly where it was"
_CREDENTIALS = (
    "give the application AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN) or a web identity"
    " in its environment, with the right to list, read, write and delete there"
)
_STORE = (
    (
        re.compile(r"NoSuchBucket|UnknownStoreException"),
        "the bucket does not exist",
        "make the bucket, or set spark.checkpoint to one that exists; another store than AWS is named by "
        "spark.hadoop.fs.s3a.endpoint in [spark.conf]",
    ),
    (
        re.compile(
            r"NoAuthWithAWS|NoAwsCredentials|CredentialInitialization|"
            r"Unable to load (AWS )?[Cc]redentials"
        ),
        "there are no credentials for it",
        _CREDENTIALS,
    ),
    (
        re.compile(r"Status Code: 40[13]|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDeniedException"),
        "the object store refuses these credentials",
        _CREDENTIALS,
    ),
    (
        re.compile(r"AWS\w*IOException|AWSServiceThrottled|HttpHostConnect|ConnectTimeout|UnknownHost|S3Exception"),
        "the object store does not answer as it should",
        f"is it there, and is spark.hadoop.fs.s3a.endpoint in [spark.conf] right? {_GOES_ON}",
    ),
)  # fmt: skip
_SAID = re.compile(r"(?:Caused by: )?[\w.$]+(?:Exception|Error): [^\n]+")


def storage_error(who: str, text: str, folder: str) -> ServiceError | None:
    """The error, if `text` (a Java report) is about a full disk or a failed object store, else None.

    who: what has failed, for the message. folder: of the checkpoints.
    """
    if _FULL.search(text):
        return ServiceError(
            f"{who}: no space is left on a disk: {', '.join(_room(folder))}, or on one of an executor",
            hint=f"make room there, or move it (spark.checkpoint, TMPDIR); {_GOES_ON}",
        )
    if "s3a" not in text.lower():
        return None
    for pattern, cause, hint in _STORE:
        match = pattern.search(text)
        if match:
            return ServiceError(f"{who}: {folder}: {cause} ({_line_of(text, match.start())})", hint=hint)
    return None


def _line_of(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    return text[begin:].split("\n", 1)[0].strip()[:400]


def _room(folder: str) -> list[str]:
    """Free and total MiB of each disk that is written to, as text.

    The disk with the least free space comes first.
    """
    places = {"spark.checkpoint": folder, "temporary files": tempfile.gettempdir()}
    free = {
        f"{name} {place}": shutil.disk_usage(place) for name, place in places.items() if os.path.isdir(place)
    }
    return [
        f"{place} has {usage.free / 2**20:,.1f} of {usage.total / 2**20:,.1f} MiB free"
        for place, usage in sorted(free.items(), key=lambda entry: entry[1].free)
    ]


@contextmanager
def storage_errors(location: str) -> Iterator[None]:
    """Raise Java's errors about a folder as ServiceError."""
    # Imported here: readers of results without Spark need not have the package.
    from py4j.protocol import Py4JError

    try:
        yield
    except Py4JError as error:
        text = str(error)
        match = _SAID.search(text)
        raise storage_error("the checkpoint", text, location) or ServiceError(
            f"{location} cannot be read or written: {match[0][:400] if match else text[:400]}"
        ) from None
