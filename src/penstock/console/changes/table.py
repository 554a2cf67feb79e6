"""The table of all changes."""

from penstock.console.changes.access import ACCESS
from penstock.console.changes.cluster import CLUSTER
from penstock.console.changes.groups import GROUPS
from penstock.console.changes.pipelines import PIPELINES
from penstock.console.changes.schemas import SCHEMAS
from penstock.console.changes.topics import TOPICS
from penstock.console.changes.waiting import WAITING
from penstock.console.messages.produce import PRODUCE

CHANGES = (*TOPICS, *GROUPS, *CLUSTER, *WAITING, *ACCESS, *SCHEMAS, *PIPELINES, PRODUCE)
