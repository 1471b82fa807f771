"""Results as a table of Delta Lake: a batch is one commit, which carries the number of the batch.

The commit has a transaction identifier of Delta's protocol (`txn`): the identity of the results, and the batch as its
version. So the table itself says which batches it has, and of two commits with the same identifier that started from
the same version of the table only one succeeds.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastic.errors import InvalidSetting, MissingPackage
from elastic.results.errors import SinkUnavailable
from elastic.results.table_sink import TableSink

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaSink(TableSink):
    """Appends to the table at a folder, such as `file:///table` or `s3://bucket/table`, and creates it if necessary.

    `storage_options` are those of the package `deltalake`. Columns that later results have in addition are added.
    """

    def __init__(self, table: str, **storage_options: str) -> None:
        super().__init__()
        _import()
        if not table:
            raise InvalidSetting("sink", "delta:", "name the folder of the table, as in delta:file:///table")
        self._url = table
        self._options = storage_options
        self._table: DeltaTable | None = None

    def __repr__(self) -> str:
        return f"DeltaSink({self._url!r}, next={self._next})"

    def _load(self) -> int | None:
        """Load the newest version of the table; a commit is based on it, and conflicts with every later commit."""
        deltalake = _import()
        try:
            if self._table is None:
                self._table = deltalake.DeltaTable(self._url, storage_options=self._options)
            else:
                self._table.update_incremental()
        except deltalake.exceptions.TableNotFoundError:
            return None
        except (OSError, deltalake.exceptions.DeltaError) as cause:
            raise self._explain(cause) from cause
        newest = self._table.transaction_version(self._id)
        return 0 if newest is None else newest + 1

    def _commit(self, batch: int, rows: pa.Table) -> None:
        deltalake = _import()
        if self._table is not None and not rows.num_rows:  # such a batch has no columns but those of its origin
            rows = pa.schema(self._table.schema().to_arrow()).empty_table()
        try:
            deltalake.write_deltalake(
                self._url if self._table is None else self._table,
                rows,
                mode="error" if self._table is None else "append",
                schema_mode="merge",
                storage_options=self._options,
                commit_properties=deltalake.CommitProperties(app_transactions=[deltalake.Transaction(self._id, batch)]),
            )
        except (OSError, deltalake.exceptions.DeltaError) as cause:
            raise self._explain(cause) from cause

    @property
    def _id(self) -> str:
        return f"elastic-{self._results}"

    def _explain(self, cause: Exception) -> Exception:
        """Return the error itself, or that the delivery is to be repeated, which looks at the table first.

        That is where another commit was first, or the store failed: `deltalake` has no type of its own for the latter.
        """
        errors = _import().exceptions
        if isinstance(cause, OSError | errors.CommitFailedError) or type(cause) is errors.DeltaError:
            return SinkUnavailable(repr(self), str(cause))
        return cause


def _import() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ModuleNotFoundError as missing:
        raise MissingPackage("the Delta Lake sink", missing.name or "deltalake", "delta") from missing
    return deltalake
