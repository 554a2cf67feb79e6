"""The embedded store compared with a dict: any multis, any versions, with crashes in between."""

import tempfile
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.clock import SystemClock
from penstock.metadata.errors import (
    BadVersion,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    StoreError,
)
from penstock.metadata.store import (
    ANY_VERSION,
    Change,
    Check,
    ChildrenChanged,
    Create,
    DataChanged,
    Delete,
    Operation,
    Set,
)
from penstock.metadata.tree import FILE_NAME, Tree

PATHS = st.sampled_from(["/a", "/b", "/a/a", "/a/b", "/b/a", "/a/a/a", "/a/a/b"])
VERSIONS = st.integers(ANY_VERSION, 2)
DATA = st.sampled_from([None, b"", b"x", b"\xff"])
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Check, PATHS, VERSIONS),
    st.builds(Create, PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(Set, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
)


@dataclass
class ModelNode:
    data: bytes | None = None
    version: int = 0
    ephemeral: bool = False
    had: int = 0


class Model:
    """The rules again, as simply as possible."""

    def __init__(self) -> None:
        self.nodes = {"/": ModelNode()}
        self.changes: set[Change] = set()

    def apply(self, operation: Operation) -> type[StoreError] | None:
        path = operation.path
        parent = path.rpartition("/")[0] or "/"
        if isinstance(operation, Create):
            if parent not in self.nodes:
                return NoNode
            if self.nodes[parent].ephemeral:
                return EphemeralParent
            if operation.sequential:
                path += f"{self.nodes[parent].had:010d}"
            if path in self.nodes:
                return NodeExists
            self.nodes[parent].had += 1
            self.nodes[path] = ModelNode(operation.data, ephemeral=operation.ephemeral)
            self.changes |= {DataChanged(path), ChildrenChanged(parent)}
            return None
        if path not in self.nodes:
            return NoNode
        if operation.version not in {ANY_VERSION, self.nodes[path].version}:
            return BadVersion
        if isinstance(operation, Set):
            self.nodes[path].data = operation.data
            self.nodes[path].version += 1
            self.changes.add(DataChanged(path))
        if isinstance(operation, Delete):
            if any(other.startswith(f"{path}/") for other in self.nodes):
                return NotEmpty
            del self.nodes[path]
            self.changes |= {DataChanged(path), ChildrenChanged(path), ChildrenChanged(parent)}
        return None


class StoreMachine(RuleBasedStateMachine):
    """Answered writes are there; refused ones left no trace."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.model = Model()
        self.open()

    def open(self) -> None:
        self.tree = Tree.open(Path(self.folder.name) / FILE_NAME, SystemClock())
        # These tests cut no power: without syncs a run takes a tenth of the time.
        self.tree._connection.execute("PRAGMA synchronous = OFF")
        self.reported: list[Change] = []
        self.tree.listeners.append(self.reported.extend)
        self.session = self.tree.open_session()

    @rule(multis=st.lists(st.lists(OPERATIONS, max_size=5), min_size=1, max_size=3))
    def write(self, multis: list[list[Operation]]) -> None:
        expected: list[tuple[type[StoreError], int] | None] = []
        changes: set[Change] = set()
        for operations in multis:
            attempt = deepcopy(self.model)
            attempt.changes = set()
            refused = None
            for index, operation in enumerate(operations):
                kind = attempt.apply(operation)
                if kind is not None:
                    refused = (kind, index)
                    break
            expected.append(refused)
            if refused is None:
                self.model = attempt
                changes |= attempt.changes
        self.reported.clear()
        answers = self.tree.apply(self.session, multis)
        assert [
            (type(answer), answer.index) if isinstance(answer, StoreError) else None
            for answer in answers
        ] == expected
        assert set(self.reported) == changes

    @rule()
    def end_session(self) -> None:
        self.tree.end_session(self.session)
        self.session = self.tree.open_session()
        self.forget_ephemerals()

    @rule()
    def restart(self) -> None:
        self.tree.close()
        self.open()
        self.forget_ephemerals()

    def forget_ephemerals(self) -> None:
        for path in [path for path, node in self.model.nodes.items() if node.ephemeral]:
            del self.model.nodes[path]

    @invariant()
    def the_tree_is_the_model(self) -> None:
        found = {}
        todo = ["/"]
        while todo:
            path = todo.pop()
            node = self.tree.get(path)
            assert node.created_zxid <= node.modified_zxid
            assert node.ephemeral_owner in {0, self.session}
            found[path] = (node.data, node.version, node.ephemeral_owner != 0)
            todo += [f"{path.rstrip('/')}/{name}" for name in self.tree.children(path)]
        assert found == {
            path: (node.data, node.version, node.ephemeral)
            for path, node in self.model.nodes.items()
        }

    def teardown(self) -> None:
        self.tree.close()
        self.folder.cleanup()


TestStoreMachine = StoreMachine.TestCase
