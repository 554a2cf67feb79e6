"""All logs of a broker, in one or more log directories.

Partitions come, go and move between directories here; `tick` does what is due by time. A
directory that fails takes its partitions offline, and the others go on.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from penstock.config.topic import TopicConfig
from penstock.errors import ConfigError, ErrorCode, KafkaError, StorageError
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, remove_flat_dir, replace
from penstock.log.flush import Flusher
from penstock.log.log_dir import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    LogDir,
    LogDirOffline,
)
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from penstock.log.naming import Role, dir_name, parse_dir_name
from penstock.log.open_segments import DEFAULT_LIMIT, OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import decode_partition_metadata, encode_partition_metadata
from penstock.log.recovery import load_log
from penstock.types import TopicPartition, Uuid

IGNORED = {"lost+found", "__cluster_metadata-0"}

logger = logging.getLogger(__name__)
