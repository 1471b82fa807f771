"""Results as a table of Iceberg: a batch is one snapshot, committed together with the position of the sink.

The position is a property of the table, `elastic.<results>.next`, which outlives the expiry of snapshots. Every commit
appends, so that it requires the snapshot it started from: of two writers only one succeeds. The summary of a snapshot
names its batch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pyarrow as pa

from elastic.errors import InvalidSetting, MissingPackage
from elastic.results.errors import SinkUnavailable
from elastic.results.table_sink import TableSink

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_RETRIES = "commit.retry.num-retries"


class IcebergSink(TableSink):
    """Appends to a table such as `namespace.table`, and creates it if necessary.

    `catalog` names a catalog of PyIceberg's configuration (`.pyiceberg.yaml` or PYICEBERG_CATALOG__...); `properties`
    are added to it. Columns that later results have in addition are added to the table.
    """

    def __init__(self, table: str, catalog: str = "default", **properties: str) -> None:
        super().__init__()
        _check_installed()
        if "." not in table.strip("."):
            raise InvalidSetting("sink", f"iceberg:{table}", "name namespace and table, as in iceberg:namespace.table")
        self._name = table
        self._catalog_name = catalog
        self._properties = properties
        self._catalog: Catalog | None = None
        self._table: Table | None = None

    @classmethod
    def from_url(cls, url: str, **settings: Any) -> "IcebergSink":
        """Return the sink of namespace.table or catalog/namespace.table, with properties of the catalog as a query."""
        address, _, query = url.partition("?")
        catalog, slash, table = address.rpartition("/")
        return cls(table, **{"catalog": catalog if slash else "default", **dict(parse_qsl(query)), **settings})

    def __repr__(self) -> str:
        return f"IcebergSink({self._name!r}, {self._catalog_name!r}, next={self._next})"

    def _load(self) -> int | None:
        """Load the newest metadata of the table; a commit is made on it, and refused if there is newer one."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            self._table = self._load_catalog().load_table(self._name)
        except NoSuchTableError:
            return None
        except _transient() as cause:
            raise SinkUnavailable(repr(self), str(cause)) from cause
        return int(self._table.metadata.properties.get(self._position, 0))

    def _commit(self, batch: int, rows: pa.Table) -> None:
        try:
            table = self._table or self._create(rows)
            if not rows.num_rows:  # such a batch has no columns but those of its origin
                rows = table.schema().as_arrow().empty_table()
            # In this copy of the metadata only: PyIceberg would repeat a refused commit on the newer snapshot, which
            # another writer may have committed with the same batch.
            table.metadata.properties[_RETRIES] = "0"
            with table.transaction() as transaction:
                with transaction.update_schema() as update:
                    update.union_by_name(rows.schema)
                summary = {"elastic.results": self._results, "elastic.batch": str(batch)}
                transaction.append(rows, snapshot_properties=summary)
                transaction.set_properties({self._position: str(batch + 1)})
        except _transient() as cause:
            # Another commit was first, or the outcome is unknown: the next delivery looks at the table.
            raise SinkUnavailable(repr(self), str(cause)) from cause

    def _create(self, rows: pa.Table) -> "Table":
        catalog = self._load_catalog()
        catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        return catalog.create_table_if_not_exists(self._name, rows.schema)

    def _load_catalog(self) -> "Catalog":
        from pyiceberg.catalog import load_catalog

        if self._catalog is None:
            self._catalog = load_catalog(self._catalog_name, **self._properties)
        return self._catalog

    @property
    def _position(self) -> str:
        return f"elastic.{self._results}.next"


def _transient() -> tuple[type[Exception], ...]:
    from pyiceberg import exceptions

    return (
        OSError,
        exceptions.CommitFailedException,
        exceptions.CommitStateUnknownException,
        exceptions.ServerError,
        exceptions.ServiceUnavailableError,
    )


def _check_installed() -> None:
    try:
        import_module("pyiceberg.table")
    except ModuleNotFoundError as missing:
        raise MissingPackage("the Iceberg sink", missing.name or "pyiceberg", "iceberg") from missing
