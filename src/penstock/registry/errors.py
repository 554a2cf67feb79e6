"""The registry's errors, with Confluent's error codes; their first three digits are
the HTTP status.
"""

from http import HTTPStatus
from typing import Final

from penstock.errors import KafkaError

INVALID_SCHEMA: Final = 42201
LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)


class RegistryError(Exception):
    """An error as the client sees it: `{"error_code": …, "message": …}`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def status(self) -> HTTPStatus:
        return HTTPStatus(self.code if self.code < 1_000 else self.code // 100)


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | None = None) -> RegistryError:
    return RegistryError(
        40403, f"Schema {schema_id} not found" if schema_id else "Schema not found"
    )


def lags_behind() -> RegistryError:
    return RegistryError(50302, "This instance lags behind the topic; try again soon")


def subject_soft_deleted(subject: str) -> RegistryError:
    text = f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    return RegistryError(40404, text)


def subject_not_soft_deleted(subject: str) -> RegistryError:
    text = f"Subject '{subject}' was not deleted first before being permanently deleted"
    return RegistryError(40405, text)


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    text = (
        f"Subject '{subject}' Version {version} was soft deleted."
        "Set permanent=true to delete permanently"
    )
    return RegistryError(40406, text)


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    text = (
        f"Subject '{subject}' Version {version} was not deleted first before being permanently "
        "deleted"
    )
    return RegistryError(40407, text)


def no_subject_level(subject: str) -> RegistryError:
    text = f"Subject '{subject}' does not have subject-level compatibility configured"
    return RegistryError(40408, text)


def no_subject_mode(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, details: list[str]) -> RegistryError:
    text = (
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{", ".join(details)}]'
    )
    return RegistryError(409, text)


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(INVALID_SCHEMA, f"Invalid schema: {reason}")


def invalid_version(text: str) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{text}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryError:
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode() -> RegistryError:
    return RegistryError(
        42204, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, and IMPORT"
    )


def not_permitted(text: str) -> RegistryError:
    return RegistryError(42205, text)


def reference_exists(subject: str, version: int) -> RegistryError:
    return RegistryError(
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str, reason: str) -> RegistryError:
    return RegistryError(
        42208, f"The specified subject '{subject}' is not a valid subject: {reason}"
    )


def store_failed(error: KafkaError) -> RegistryError:
    return RegistryError(50001, f"Error in the backend Kafka store: {error}")
