#!/usr/bin/env python3
"""Tests of bench/compare without its peers: compare_test.py REDCO."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "bench")
sys.path.insert(0, os.path.join(BENCH, "harness"))
import measure  # noqa: E402
import report  # noqa: E402
import step_profile  # noqa: E402
from rows import ROWS, Metric, Program, Row  # noqa: E402

REDCO = os.path.abspath(sys.argv.pop(1))
SPEED = Metric("speed", "tokens/s", share="share", ceiling="streaming read", ratio=1.2, share_target=0.8)
TIME = Metric("seconds", "s", higher=False, ratio=1.5)
ROW = Row("row", "decode", "some work",
          (Program("two", "redco", ("job",)), Program("fast", "torch", ("a.py",)), Program("slow", "torch", ("b.py",)),
           Program("one", "redco", ("job",), against=()), Program("second", "redco", ("job",), against=("slow",))),
          (SPEED, TIME))


def results(**programs):
    return {"rows": {"row": programs}}


class Report(unittest.TestCase):
    def setUp(self):
        # At the ceiling `two` makes 100 tokens/s (its rounds: 60 / 0.6, 90 / 0.8, 80 / 0.8), `one` 50.
        self.results = results(two=[dict(speed=60, share=0.6, seconds=3), dict(speed=90, share=0.8, seconds=1),
                                    dict(speed=80, share=0.8, seconds=2)],
                               fast=[dict(speed=90, seconds=8), dict(speed=40, seconds=8), dict(speed=50, seconds=8)],
                               slow=[dict(speed=20, seconds=4)], one=[dict(speed=40, share=0.8)],
                               second=[dict(speed=30, share=0.3)])
        self.lines = {(x["program"].name, x["metric"].field): x for x in report.lines([ROW], self.results)}

    def test_compares_medians_with_the_best_peer(self):
        line = self.lines["two", "speed"]
        self.assertEqual((line["ours"], line["best"], line["theirs"], line["ratio"]), (80, "fast", 50, 1.6))

    def test_less_is_better_for_seconds(self):
        line = self.lines["two", "seconds"]
        self.assertEqual((line["ours"], line["best"], line["theirs"], line["ratio"]), (2, "slow", 4, 2))
        self.assertIsNone(line["share"])

    def test_shares_are_of_the_ceiling_of_as_many_cpus(self):
        self.assertAlmostEqual(self.lines["two", "speed"]["share"], 0.8)
        self.assertAlmostEqual(self.lines["two", "speed"]["peer_share"], 0.5)
        self.assertAlmostEqual(self.lines["one", "speed"]["share"], 0.8)

    def test_a_program_can_name_its_peers(self):
        self.assertEqual(self.lines["second", "speed"]["best"], "slow")
        self.assertIsNone(self.lines["one", "speed"]["best"])

    def test_a_target_is_at_most_95_percent_of_the_cap(self):
        self.assertAlmostEqual(report.target(SPEED, 0.5), 1.2)
        self.assertAlmostEqual(report.target(SPEED, 0.9), 0.95 / 0.9)
        self.assertEqual(report.target(TIME, None), 1.5)

    def test_rows_without_peers_have_no_ratio(self):
        line, = [x for x in report.lines([ROW], results(two=[dict(speed=60, share=0.6)])) if x["metric"] == SPEED]
        self.assertIsNone(line["ratio"])
        self.assertIn("some work", report.table([ROW], results(two=[dict(speed=60, share=0.6)])))

    def test_disturbed_runs_count_only_without_quiet_ones(self):
        runs = [dict(speed=10, other_cpu=1.0), dict(speed=80, other_cpu=0.1), dict(speed=90, other_cpu=0)]
        self.assertEqual(report.median(runs, "speed"), 85)
        self.assertEqual(report.median(runs[:1], "speed"), 10)
        self.assertEqual(report.median([*runs[:1], dict(speed=30)], "speed"), 30)
        self.assertFalse(report.noisy(runs))
        self.assertTrue(report.noisy(runs[:1]) and report.noisy([dict(speed=1)]))

    def test_page(self):
        machine = dict(date="2026-01-02", cpu="CPU", family="family 1, model 2", instruction_sets=["avx2"], cores=2,
                       memory_gib=8, versions={"torch": "2"},
                       redco=dict(version="1", revision="abc", build="GCC", blas="OpenBLAS", mpi="MPI"))
        profiles = [dict(title="a job", step_s=2.0, shares={"products": 0.75, "other": 0.25})]
        page = report.page([ROW], {**self.results, "machine": machine, "profiles": profiles,
                                   "notes": ["One round was short."]})
        for text in ("2026-01-02", "revision abc", "(1 to 3)", "0 of the 9 runs", "**Notes on this run.** One round was short.\n", "For 9 runs", "| row | two | fast | 1.60 * | 1.20 | 80% of streaming read | 80% |", "| two | 80.0 tokens/s * | fast | 50.0 * | 1.60 |",
                     "80% of streaming read | 50%", "| a job | 2.00 s | 75% |"):
            self.assertIn(text, page)
        self.assertLessEqual(max(len(line) for line in page.split("\n") if not line.startswith("|")), 100)


class Measure(unittest.TestCase):
    def test_finds_the_last_json_object(self):
        self.assertEqual(measure.last_json('note {1}\n{"a": 1}\n{\n "b": {"c": 2}\n}\n'), {"b": {"c": 2}})
        with self.assertRaises(ValueError):
            measure.last_json("nothing")

    def test_memory_beyond_the_state_leaves_out_libraries(self):
        sample = measure.derived(dict(parameters=10, peak_memory_bytes=500, libraries_bytes=100))
        self.assertEqual((sample["beyond_state_bytes"], sample["beyond_base_bytes"]), (240, 380))

    def test_a_disturbed_run_is_repeated(self):
        used = iter([0.5, 0.3, 0.4, 0.0])
        runner = measure.Runner("redco", "home", quiet=0.1, tries=3)
        runner.run = lambda program: dict(other_cpu=next(used))
        self.assertEqual(runner.quietest(None)["other_cpu"], 0.3)
        self.assertEqual(runner.quietest(None)["other_cpu"], 0.0)

    def test_a_failed_program_is_left_out_of_the_following_rounds(self):
        log, kept = [], []
        runner = measure.Runner("false", "home")
        measure.measure([Row("r", "g", "t", (Program("ours", "redco", ("gpt2-124m",)),), (SPEED,))], runner, 2, None,
                        log.append, lambda *a: kept.append(a))
        self.assertEqual((len(log), kept), (1, []))
        self.assertIn("exit code 1", log[0])

    def test_profile_shares_add_up(self):
        kernels = [dict(name="linear", seconds=2), dict(name="attention_backward", seconds=1), dict(name="adamw", seconds=0.5),
                   dict(name="binary", seconds=0.25)]
        shares = step_profile.shares(dict(seconds=5, kernels=kernels, collectives=[dict(seconds=1, transfer=0.25)]))
        self.assertEqual(shares, dict(products=0.4, attention=0.2, optimizer=0.1, elementwise=0.05,
                                      collectives=0.2, other=0.05))


class Rows(unittest.TestCase):
    def test_names_are_unique_and_files_exist(self):
        self.assertEqual(len({r.name for r in ROWS}), len(ROWS))
        for row in ROWS:
            self.assertIn(row.group, report.GROUPS)
            self.assertEqual(len({p.name for p in row.programs}), len(row.programs))
            for p in row.programs:
                self.assertTrue(set(p.against or ()) <= {q.name for q in row.programs}, p)
                if p.kind in ("torch", "torchrun", "jax"):
                    with open(os.path.join(BENCH, "peers", p.arguments[0])) as source:
                        compile(source.read(), p.arguments[0], "exec")

    def test_the_jobs_of_all_rows_are_valid(self):
        for row in ROWS:
            for p in row.programs:
                if p.kind not in report.OURS:
                    continue
                job = os.path.join(BENCH, p.arguments[0] + ".yaml") if p.kind == "redco" else os.path.join(ROOT, p.arguments[0])
                keys = [k for k in p.arguments[1:] if "=" in k and "@" not in k]
                done = subprocess.run([REDCO, "validate", job, "workdir=unused", *keys], text=True, capture_output=True)
                self.assertEqual(done.returncode, 0, f"{row.name}, {p.name}: {done.stderr}")


class Programs(unittest.TestCase):
    def test_bench_reports_every_field_that_the_rows_use(self):
        tiny = ("gpt2-124m", "model.n_layer=1", "model.n_embd=32", "model.n_head=2", "model.n_positions=32",
                "data.max_length=16", "parallel.threads_per_rank=1", "--steps", "1")
        runner = measure.Runner(REDCO, "home", quiet=99)
        train = measure.derived(runner.quietest(Program("train", "redco", tiny)))
        predict = runner.quietest(Program("predict", "redco", (*tiny, "--predict", "predict.max_new_tokens=4")))
        for row in ROWS:
            for p in row.programs:
                for m in row.metrics if p.kind == "redco" else ():
                    sample = predict if "--predict" in p.arguments else train
                    self.assertGreater(sample[m.field], 0 if m.field != "beyond_base_bytes" else -1, (row.name, m.field))
                    if m.share:
                        self.assertGreater(sample[m.share], 0, (row.name, m.share))
        self.assertGreater(train["wall_s"], 0)

    def test_one_command_measures_and_writes_the_page(self):
        with tempfile.TemporaryDirectory() as work:
            page, kept = os.path.join(work, "page.md"), os.path.join(work, "results.json")
            done = subprocess.run([os.path.join(BENCH, "compare"), "--redco", REDCO, "--rows", "ppo", "--only", "redco",
                                   "--quick", "--quiet", "99", "--results", kept, "--home", work, "--output", page],
                                  text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("environment steps/s", done.stdout)
            with open(page) as text:
                self.assertIn("| 1 rank x 1 thread | ", text.read())
            with open(kept) as f:
                sample, = json.load(f)["rows"]["ppo"]["1 rank x 1 thread"]
            self.assertGreater(sample["env_steps_per_s"], 10)

    def test_an_unknown_row_is_an_error(self):
        done = subprocess.run([os.path.join(BENCH, "compare"), "--rows", "nothing"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no row or group nothing", done.stderr)


if __name__ == "__main__":
    unittest.main()
