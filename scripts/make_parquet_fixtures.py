#!/usr/bin/env python3
"""Writes tests/fixtures/parquet: small files by pyarrow, and their rows as JSON lines.

    python scripts/make_parquet_fixtures.py tests/fixtures/parquet
"""
import base64
import decimal
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)


def chats(n):
    rows = []
    for i in range(n):
        turns = [{"role": "user", "content": f"Question {i} é"}, {"role": "assistant", "content": f"Answer {i % 7}"}]
        rows.append({
            "id": i,
            "messages": [] if i % 11 == 3 else None if i % 11 == 5 else turns * (1 + i % 3),
            "meta": {"lang": "de" if i % 2 else None, "scores": [float(i), 0.5] if i % 4 else None},
            "tags": [[f"t{i}", None], []] if i % 5 else [],
        })
    return rows


def flat(n):
    return [{
        "text": None if i % 6 == 1 else f"text number {i} " + "x" * (i % 40),
        "label": ["pos", "neg"][i % 2],
        "i32": i - 5, "i64": i * 10**10, "u64": 2**63 + i, "f": i / 4, "d": None if i % 3 else i / 7,
        "b": i % 3 == 0, "many": i % 2 == 0, "dec": decimal.Decimal(i) / 4,
    } for i in range(n)]


FLAT = pa.schema([("text", pa.string()), ("label", pa.string()), ("i32", pa.int32()), ("i64", pa.int64()),
                  ("u64", pa.uint64()), ("f", pa.float32()), ("d", pa.float64()), ("b", pa.bool_()),
                  ("many", pa.bool_()), ("dec", pa.decimal128(10, 2))])


def write(name, rows, schema=None, **kwargs):
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, out / f"{name}.parquet", **kwargs)
    plain = [{k: float(v) if isinstance(v, decimal.Decimal) else v for k, v in r.items()} for r in rows]
    (out / f"{name}.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in plain))


write("chats-snappy", chats(60), compression="snappy", row_group_size=25)
write("chats-v2-zstd", chats(60), compression="zstd", data_page_version="2.0", data_page_size=200)
write("flat-plain", flat(70), FLAT, compression="none", use_dictionary=False, data_page_size=300)
write("flat-gzip", flat(70), FLAT, compression="gzip", row_group_size=30)
encodings = {"text": "DELTA_BYTE_ARRAY", "label": "DELTA_LENGTH_BYTE_ARRAY", "i32": "DELTA_BINARY_PACKED",
             "i64": "DELTA_BINARY_PACKED", "f": "BYTE_STREAM_SPLIT", "d": "BYTE_STREAM_SPLIT", "b": "RLE"}
write("flat-delta", flat(300), FLAT, compression="snappy", use_dictionary=False, column_encoding=encodings,
      data_page_version="2.0")
write("maps", [{"m": [("a", 1), ("b", None)]}, {"m": []}, {"m": None}],
      pa.schema([("m", pa.map_(pa.string(), pa.int64()))]))
lines = [{"m": {"a": 1, "b": None}}, {"m": {}}, {"m": None}]
(out / "maps.jsonl").write_text("".join(json.dumps(r) + "\n" for r in lines))
pq.write_table(pa.table({"text": ["a"]}), out / "brotli.parquet", compression="brotli")

# Columns of classes, with the metadata that the library datasets writes.
label = {"names": ["negative", "positive"], "_type": "ClassLabel"}
tag = {"names": ["O", "B-PER", "I-PER"], "_type": "ClassLabel"}
stars = {"names": ["0", "1", "2"], "_type": "ClassLabel"}
value = {"dtype": "string", "_type": "Value"}
features = {
    "label": label,
    "ner_tags": {"feature": tag, "_type": "Sequence"},
    "pos": [tag],
    "meta": {"label": label, "source": value},
    "stars": stars,
}
rows = [
    {"label": 1, "ner_tags": [1, 2, 0], "pos": [0], "meta": {"label": 0, "source": "a"}, "stars": 2},
    {"label": -1, "ner_tags": [], "pos": None, "meta": None, "stars": None},
]
named = [
    {
        "label": "positive",
        "ner_tags": ["B-PER", "I-PER", "O"],
        "pos": ["O"],
        "meta": {"label": "negative", "source": "a"},
        "stars": 2,
    },
    {"label": None, "ner_tags": [], "pos": None, "meta": None, "stars": None},
]
table = pa.Table.from_pylist(rows)
for name, metadata in (
    ("classes", json.dumps({"info": {"features": features}})),
    ("classes-few", json.dumps({"info": {"features": {"label": dict(label, names=["negative"])}}})),
    ("classes-other", '{"info": {"features": [1, {"label": 3}]}}'),
):
    pq.write_table(table.replace_schema_metadata({"huggingface": metadata}), out / f"{name}.parquet")
(out / "classes.jsonl").write_text("".join(json.dumps(r) + "\n" for r in named))

# Images as the library datasets embeds them.
png = (out.parent / "images" / "one-bit.png").read_bytes()
images = [{"image": {"bytes": png, "path": "a.png"}, "label": 0}, {"image": {"bytes": None, "path": "b.png"}, "label": 1},
          {"image": None, "label": 1}]
pq.write_table(pa.Table.from_pylist(images), out / "images.parquet")
texts = ["data:;base64," + base64.b64encode(png).decode(), "b.png", None]
(out / "images.jsonl").write_text("".join(json.dumps({**r, "image": t}) + "\n" for r, t in zip(images, texts)))
