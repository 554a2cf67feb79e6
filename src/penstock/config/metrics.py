"""What the broker tells of itself."""

from dataclasses import dataclass

from penstock.config.setting import Form, Update, setting
from penstock.config.value import ConfigType

PORT = "[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """What the broker tells of itself."""

    penstock_http_listen: str = setting(
        "penstock.http.listen",
        "127.0.0.1:0",
        "host:port of the HTTP server for metrics and health; port 0 picks a free one; empty "
        "disables it.",
        form=Form(rf"([^\s\[\]:/]*|\[[0-9A-Fa-f:.%]+\]):({PORT})|", "host:port, or empty"),
    )
    metrics_num_samples: int = setting(
        "metrics.num.samples",
        2,
        "Accepted, without effect: metrics are totals, of which their reader makes rates.",
        low=1,
    )
    metrics_sample_window_ms: int = setting(
        "metrics.sample.window.ms",
        30_000,
        "Accepted, without effect: metrics are totals, of which their reader makes rates.",
        kind=ConfigType.LONG,
        low=1,
    )
    metrics_recording_level: str = setting(
        "metrics.recording.level",
        "INFO",
        "Accepted, without effect: every metric is kept.",
    )
    metric_reporters: tuple[str, ...] = setting(
        "metric.reporters",
        (),
        "Accepted, without effect: metrics are read over HTTP.",
        update=Update.CLUSTER_WIDE,
    )
    auto_include_jmx_reporter: bool = setting(
        "auto.include.jmx.reporter",
        True,
        "Accepted, without effect: there is no JVM.",
    )
    kafka_metrics_reporters: tuple[str, ...] = setting(
        "kafka.metrics.reporters",
        (),
        "Accepted, without effect: metrics are read over HTTP.",
    )
    kafka_metrics_polling_interval_secs: int = setting(
        "kafka.metrics.polling.interval.secs",
        10,
        "Accepted, without effect: metrics are read over HTTP.",
        low=1,
    )
    telemetry_max_bytes: int = setting(
        "telemetry.max.bytes",
        1_048_576,
        "Accepted, without effect: metrics of clients are not taken yet (KIP-714).",
        low=1,
    )

    def http_address(self) -> tuple[str, int]:
        """Where to serve HTTP; `penstock.http.listen` is not empty."""
        host, _, port = self.penstock_http_listen.rpartition(":")
        return host.strip("[]"), int(port)
