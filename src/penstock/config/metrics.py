"""Settings of metrics and health pages."""

from dataclasses import dataclass

from penstock.config.http_address import LISTEN_FORM, HttpAddress, http_address
from penstock.config.setting import Update, setting
from penstock.config.value import ConfigType


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """Metrics and health pages."""

    penstock_http_listen: str = setting(
        "penstock.http.listen",
        "127.0.0.1:0",
        "host:port of the HTTP server for metrics and health; port 0 picks a free one; empty "
        "disables it.",
        form=LISTEN_FORM,
    )
    metrics_num_samples: int = setting(
        "metrics.num.samples",
        2,
        "Accepted, without effect: metrics are totals, from which their reader computes rates.",
        low=1,
    )
    metrics_sample_window_ms: int = setting(
        "metrics.sample.window.ms",
        30_000,
        "Accepted, without effect: metrics are totals, from which their reader computes rates.",
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
        "Largest push of a client's metrics (KIP-714), compressed or not.",
        low=1,
    )

    def http_address(self) -> HttpAddress:
        """The address of the HTTP server; call it only if `penstock.http.listen` is not empty."""
        return http_address(self.penstock_http_listen, "penstock.http.listen")
