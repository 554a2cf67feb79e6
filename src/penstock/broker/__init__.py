"""The broker: listeners, sessions, one handler per API, and the composition of all parts."""

from penstock.windows import refuse_import

refuse_import()
