"""`python -m elastic.operators` compiles every kernel into the cache, so that no node has to."""

import time

from elastic.operators import KeyedColumns, kernels


def main() -> None:
    began = time.perf_counter()
    for keys in ("key long", "key string"):
        columns = KeyedColumns(keys, {"count": "int64"})
        values = [1, 2] if keys == "key long" else ["a", "b"]
        columns.to_table(columns.count("count", columns.rows_for(values)))
        KeyedColumns.from_arrays(columns.to_arrays()).find(values)
    print(f"{kernels.NAME}, keyed columns ready in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
