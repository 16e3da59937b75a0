"""Our types as Arrow's."""

from __future__ import annotations

import pyarrow as pa

from eventlake.model.types import ColumnType

ARROW: dict[ColumnType, pa.DataType] = {
    ColumnType.BIGINT: pa.int64(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.DECIMAL: pa.decimal128(38, 6),
    ColumnType.STRING: pa.string(),
    ColumnType.TIMESTAMP: pa.timestamp("us", "UTC"),
}
