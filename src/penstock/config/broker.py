"""All broker settings, with one section for each part of the broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from penstock.config.authorization import AuthorizationConfig
from penstock.config.controller import ControllerConfig
from penstock.config.delegation import DelegationConfig
from penstock.config.group import GroupConfig
from penstock.config.identity import IdentityConfig
from penstock.config.listener import ListenerConfig
from penstock.config.listener_security import listener_setting
from penstock.config.metrics import MetricsConfig
from penstock.config.network import NetworkConfig
from penstock.config.quota import QuotaConfig
from penstock.config.replication import ReplicationConfig
from penstock.config.security import SecurityConfig
from penstock.config.services import ServicesConfig
from penstock.config.setting import Setting, load, settings
from penstock.config.share import ShareConfig
from penstock.config.storage import StorageConfig
from penstock.config.streams import StreamsConfig
from penstock.config.topic import TopicConfig
from penstock.config.topic_defaults import synonym_settings, topic_defaults
from penstock.config.transaction import TransactionConfig
from penstock.config.zookeeper import ZookeeperConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """A broker's settings. Pass a part only its section, or less; never all of them."""

    identity: IdentityConfig = field(default_factory=IdentityConfig)
    listener: ListenerConfig = field(default_factory=ListenerConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    authorization: AuthorizationConfig = field(default_factory=AuthorizationConfig)
    delegation: DelegationConfig = field(default_factory=DelegationConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    topic_defaults: TopicConfig = field(default_factory=TopicConfig)
    replication: ReplicationConfig = field(default_factory=ReplicationConfig)
    controller: ControllerConfig = field(default_factory=ControllerConfig)
    group: GroupConfig = field(default_factory=GroupConfig)
    share: ShareConfig = field(default_factory=ShareConfig)
    streams: StreamsConfig = field(default_factory=StreamsConfig)
    transaction: TransactionConfig = field(default_factory=TransactionConfig)
    quota: QuotaConfig = field(default_factory=QuotaConfig)
    zookeeper: ZookeeperConfig = field(default_factory=ZookeeperConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    services: ServicesConfig = field(default_factory=ServicesConfig)


SECTIONS: tuple[type, ...] = (
    IdentityConfig,
    ListenerConfig,
    NetworkConfig,
    SecurityConfig,
    AuthorizationConfig,
    DelegationConfig,
    StorageConfig,
    ReplicationConfig,
    ControllerConfig,
    GroupConfig,
    ShareConfig,
    StreamsConfig,
    TransactionConfig,
    QuotaConfig,
    ZookeeperConfig,
    MetricsConfig,
    ServicesConfig,
)


@cache
def broker_settings() -> Mapping[str, Setting]:
    """Every broker setting by name."""
    own = {name: each for section in SECTIONS for name, each in settings(section).items()}
    return {**own, **synonym_settings()}


def declared_setting(name: str) -> Setting | None:
    """The declaration of a broker setting, also with a listener prefix."""
    return broker_settings().get(name) or listener_setting(name)


def broker_config(texts: Mapping[str, str]) -> BrokerConfig:
    """Parse texts by name, over the defaults; undeclared names are ignored."""
    defaults = topic_defaults(texts)
    defaults.check()
    return BrokerConfig(
        identity=load(IdentityConfig, texts),
        listener=load(ListenerConfig, texts),
        network=load(NetworkConfig, texts),
        security=load(SecurityConfig, texts),
        authorization=load(AuthorizationConfig, texts),
        delegation=load(DelegationConfig, texts),
        storage=load(StorageConfig, texts),
        topic_defaults=defaults,
        replication=load(ReplicationConfig, texts),
        controller=load(ControllerConfig, texts),
        group=load(GroupConfig, texts),
        share=load(ShareConfig, texts),
        streams=load(StreamsConfig, texts),
        transaction=load(TransactionConfig, texts),
        quota=load(QuotaConfig, texts),
        zookeeper=load(ZookeeperConfig, texts),
        metrics=load(MetricsConfig, texts),
        services=load(ServicesConfig, texts),
    )
