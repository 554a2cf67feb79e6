"""Settings of authorization."""

from dataclasses import dataclass

from penstock.config.setting import setting
from penstock.errors import ConfigError

KNOWN_AUTHORIZERS = (
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationConfig:
    """Who may do what."""

    authorizer_class_name: str = setting(
        "authorizer.class.name",
        "",
        "Turns ACLs on: one of Kafka's own, "
        "`org.apache.kafka.metadata.authorizer.StandardAuthorizer` or "
        "`kafka.security.authorizer.AclAuthorizer`; both mean the same. Empty: everyone may do "
        "everything.",
    )
    super_users: str = setting(
        "super.users",
        "",
        "Principals that may do everything, such as `User:admin`, separated by semicolons.",
    )
    allow_everyone_if_no_acl_found: bool = setting(
        "allow.everyone.if.no.acl.found",
        False,
        "Whether everyone may use a resource for which there is no ACL.",
    )

    def __post_init__(self) -> None:
        if self.authorizer_class_name not in {"", *KNOWN_AUTHORIZERS}:
            raise ConfigError(
                f"authorizer.class.name is {self.authorizer_class_name!r}, but classes cannot be "
                f"loaded; use {' or '.join(KNOWN_AUTHORIZERS)}"
            )
        if not self.authorizer_class_name and self.super_users:
            raise ConfigError(
                "super.users has no effect without authorizer.class.name: everyone may do "
                "everything"
            )

    @property
    def is_on(self) -> bool:
        return bool(self.authorizer_class_name)
