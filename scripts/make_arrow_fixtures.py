#!/usr/bin/env python3
"""Writes tests/fixtures/arrow: small files by pyarrow, and their rows as JSON lines.

    python scripts/make_arrow_fixtures.py tests/fixtures/arrow
"""
import datetime
import decimal
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.ipc as ipc

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)

turn = pa.struct([("role", pa.dictionary(pa.int8(), pa.string())), ("content", pa.large_string())])
SCHEMA = pa.schema([
    ("text", pa.string()), ("view", pa.string_view()), ("bytes", pa.binary()), ("fixed", pa.binary(2)),
    ("b", pa.bool_()), ("i8", pa.int8()), ("u16", pa.uint16()), ("i32", pa.int32()), ("u64", pa.uint64()),
    ("half", pa.float16()), ("f", pa.float32()), ("d", pa.float64()), ("dec", pa.decimal128(10, 2)),
    ("day", pa.date32()), ("none", pa.null()), ("pair", pa.list_(pa.int64(), 2)),
    ("map", pa.map_(pa.string(), pa.int64())), ("messages", pa.list_(turn)),
    ("tags", pa.large_list(pa.list_(pa.string()))), ("meta", pa.struct([("n", pa.int64()), ("s", pa.string())])),
    ("word", pa.dictionary(pa.int32(), pa.string())),
])


def row(i):
    turns = [{"role": "user", "content": f"Question {i} é"}, {"role": "assistant", "content": f"Answer {i % 7}"}]
    return {
        "text": None if i % 6 == 1 else f"text {i}", "view": None if i % 7 == 2 else "short" + "x" * (i % 23),
        "bytes": b"\xff\xfe" if i % 2 else b"plain", "fixed": b"ab", "b": None if i % 5 == 0 else i % 3 == 0,
        "i8": -i, "u16": 65535 - i, "i32": i - 5, "u64": 2**63 + i, "half": i / 4, "f": i / 8,
        "d": None if i % 3 else float("nan") if i % 2 else i / 7, "dec": decimal.Decimal(i - 9) / 4,
        "day": datetime.date(1970, 1, 1 + i % 28), "none": None, "pair": None if i % 4 == 1 else [i, -i],
        "map": [("a", i)] if i % 2 else [], "messages": [] if i % 11 == 3 else None if i % 11 == 5 else turns,
        "tags": [[f"t{i}", None], []] if i % 5 else [], "meta": {"n": i, "s": None} if i % 3 else None,
        "word": ["red", "green", None, "blue"][i % 4],
    }


def plain(name, value):
    if isinstance(value, bytes):
        return None if value[0] == 0xFF else value.decode()
    if isinstance(value, decimal.Decimal) or value != value:
        return None if value != value else float(value)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    return dict(value) if name == "map" else value


def write(name, rows, schema, batch, kind=ipc.new_stream, codec=None):
    with kind(str(out / name), schema, options=ipc.IpcWriteOptions(compression=codec)) as writer:
        for i in range(0, len(rows), batch):
            writer.write_batch(pa.RecordBatch.from_pylist(rows[i:i + batch], schema=schema))


def write_lines(name, lines):
    (out / name).write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in lines))


rows = [row(i) for i in range(24)]
write("stream.arrow", rows, SCHEMA, 9)
write("zstd.arrow", rows, SCHEMA, 24, codec="zstd")
write("file.arrow", rows, SCHEMA, 24, kind=ipc.new_file)
write_lines("rows.jsonl", [{k: plain(k, v) for k, v in r.items()} for r in rows])
grown = pa.schema([("word", pa.dictionary(pa.int8(), pa.string()))])
options = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
with ipc.new_stream(str(out / "deltas.arrow"), grown, options=options) as writer:
    for words, indices in ((["a", "b"], [1, 0]), (["a", "b", "c"], [2, None, 1])):
        column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(words))
        writer.write_batch(pa.record_batch([column], schema=grown))
write_lines("deltas.jsonl", [{"word": w} for w in ("b", "a", "c", None, "b")])

# Columns of classes, with the metadata that the library datasets writes.
label = {"names": ["negative", "positive"], "_type": "ClassLabel"}
features = {"label": label, "tags": {"feature": label, "_type": "List"}, "text": {"dtype": "string", "_type": "Value"}}
schema = pa.schema([("label", pa.int64()), ("tags", pa.list_(pa.int64())), ("text", pa.string())],
                   metadata={"huggingface": json.dumps({"info": {"features": features}})})
rows = [{"label": 1, "tags": [0, 1], "text": "good"}, {"label": -1, "tags": [], "text": "bad"}]
write("classes.arrow", rows, schema, 2)
write_lines("classes.jsonl", [{"label": "positive", "tags": ["negative", "positive"], "text": "good"},
                              {"label": None, "tags": [], "text": "bad"}])

# What redco refuses.
text = pa.schema([("text", pa.string())])
with ipc.new_stream(str(out / "lz4.arrow"), text, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
    writer.write_batch(pa.RecordBatch.from_pylist([{"text": "a" * 100}], schema=text))
union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
table = pa.table({"both": union})
with ipc.new_stream(str(out / "union.arrow"), table.schema) as writer:
    writer.write_table(table)
