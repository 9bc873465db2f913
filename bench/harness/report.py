"""The table of a run, and docs/performance.md."""
import statistics
import textwrap


QUIET = 0.25  # CPUs that other processes may use during a run


def usable(samples):
    """The runs that are known to be quiet; else those whose disturbance was not measured; else all."""
    samples = samples or []
    quiet = [s for s in samples if "other_cpu" in s and s["other_cpu"] <= QUIET]
    return quiet or [s for s in samples if "other_cpu" not in s] or samples


def noisy(samples):
    """Whether no run is known to be quiet."""
    return not any(s.get("other_cpu", QUIET + 1) <= QUIET for s in samples or [])


def median(samples, field):
    values = [s[field] for s in usable(samples) if s.get(field) is not None]
    return statistics.median(values) if values else None


def number(x, unit):
    if x is None:
        return "-"
    if unit.startswith("MiB"):
        return f"{x / 2**20:.0f}"
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def marked(text, samples):
    return text + " *" if noisy(samples) else text


def percent(x):
    return "-" if x is None else f"{x:.0%}"


OURS = ("redco", "train")


def ceiling(row, metric, found, program):
    """The value at the ceiling: the median over the programs of redco that use as many CPUs."""
    alone = program.against == ()
    at = [s[metric.field] / s[metric.share] for p in row.programs if p.kind in OURS and (p.against == ()) == alone
          for s in usable(found.get(p.name)) if s.get(metric.share)]
    return statistics.median(at) if at else None


def ceiling_name(metric, samples):
    bf16 = metric.ceiling == "products" and any(s.get("bf16_products") for s in samples)
    return {"products": "bf16 products" if bf16 else "sgemm"}.get(metric.ceiling, metric.ceiling)


def lines(rows, results):
    """One dict per metric and program of redco."""
    for row in rows:
        found = results["rows"].get(row.name, {})
        for metric in row.metrics:
            for program in row.programs:
                ours = median(found.get(program.name), metric.field) if program.kind in OURS else None
                if ours is None:
                    continue
                peers = {p.name: median(found.get(p.name), metric.field) for p in row.programs
                         if p.kind not in OURS and (program.against is None or p.name in program.against)}
                peers = {n: v for n, v in peers.items() if v is not None}
                best = (max if metric.higher else min)(peers, key=peers.get) if peers else None
                theirs = peers[best] if best else None
                ratio = None
                if best:
                    ratio = ours / theirs if metric.higher else theirs / max(ours, 1e-9)
                top = ceiling(row, metric, found, program)
                # The same work, so a peer's share of the ceiling is its speed over the speed at the ceiling.
                peer_share = theirs / top if top and best else None
                yield dict(row=row, samples=found[program.name], best_samples=found.get(best), metric=metric, program=program, ours=ours, best=best, theirs=theirs, ratio=ratio,
                           share=min(1, ours / top) if top else None, peer_share=peer_share,
                           ceiling=ceiling_name(metric, found[program.name]), target=target(metric, peer_share))


def target(metric, peer_share):
    """The target of the ratio; above 95 % of the cap, 1 / the peer's share, 95 % of the cap."""
    if metric.ratio is None:
        return None
    return min(metric.ratio, 0.95 / peer_share) if peer_share else metric.ratio


HEAD = ["work", "redco", "value", "best peer", "value", "ratio", "target", "share of the ceiling", "target", "peer's share"]


def cells(line):
    m = line["metric"]
    return [line["row"].title, line["program"].name, f"{number(line['ours'], m.unit)} {m.unit}", line["best"] or "-",
            number(line["theirs"], m.unit), "-" if line["ratio"] is None else f"{line['ratio']:.2f}",
            "-" if line["target"] is None or line["ratio"] is None else f"{line['target']:.2f}",
            "-" if line["share"] is None else f"{percent(line['share'])} of {line['ceiling']}",
            percent(m.share_target if line["share"] is not None else None), percent(line["peer_share"])]


def table(rows, results):
    body = [HEAD] + [cells(line) for line in lines(rows, results)]
    widths = [max(len(r[i]) for r in body) for i in range(len(HEAD))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in body)


# --- docs/performance.md ---
GROUPS = {
    "decode": "Decoding, one answer", "batch": "Decoding, several answers", "prefill": "Prefill", "train": "Training, one process",
    "ranks": "Training, two processes", "long": "Long context", "lora": "LoRA", "seq2seq": "Pairs of texts",
    "others": "Other algorithms, RedCoast", "files": "Files",
}


def markdown(head, body):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] +
                     ["| " + " | ".join(r) + " |" for r in body])


def group_section(group, rows, results):
    text = []
    for row in rows:
        found = list(lines([row], results)) if row.group == group else []
        if not found:
            continue
        text.append(f"**{row.title}**" + (f". {row.note}" if row.note else "") + "\n")
        shares = any(line["share"] is not None for line in found)
        head = ["redco", "value", "best peer", "value", "ratio"]
        head += ["share of the ceiling", "peer's share"] if shares else []
        body = []
        for line in found:
            unit = line["metric"].unit
            cell = [line["program"].name, marked(f"{number(line['ours'], unit)} {unit}", line["samples"]), line["best"] or "",
                    marked(number(line["theirs"], unit), line["best_samples"]) if line["best"] else "",
                    f"{line['ratio']:.2f}" if line["ratio"] is not None else ""]
            if shares:
                cell += [f"{percent(line['share'])} of {line['ceiling']}" if line["share"] is not None else "",
                         percent(line["peer_share"]) if line["peer_share"] is not None else ""]
            body.append(cell)
        text.append(markdown(head, body) + "\n")
    return f"## {GROUPS[group]}\n\n" + "\n".join(text) + "\n" if text else ""


def machine_section(m):
    def versions(jax):
        return ", ".join(f"{k} {v}" for k, v in m["versions"].items() if (k in ("jax", "flax", "optax", "RedCoast")) == jax)

    r = m["redco"]
    return markdown(["", ""], [
        ["date", m["date"]],
        ["CPU", f"{m['cpu']}, {m['family']}, {m['cores']} cores, {', '.join(m['instruction_sets'])}"],
        ["memory", f"{m['memory_gib']} GiB"],
        ["redco", f"{r['version']}, revision {r['revision']}, {r['build']}"],
        ["libraries of redco", f"{r['blas']}, {r['mpi']}"],
        ["peers", versions(False)],
        ["peers on JAX", versions(True)],
    ]) + "\n\n"


def summary_section(rows, results):
    """One line per row: its first program and metric."""
    body = []
    for row in rows:
        line = next(lines([row], results), None)
        if not line or line["ratio"] is None:
            continue
        doubtful = noisy(line["samples"]) or noisy(line["best_samples"])
        body.append([row.name, line["program"].name, line["best"], f"{line['ratio']:.2f}" + (" *" if doubtful else ""),
                     f"{line['target']:.2f}" if line["target"] is not None else "",
                     f"{percent(line['share'])} of {line['ceiling']}" if line["share"] is not None else "",
                     percent(line["metric"].share_target) if line["share"] is not None and line["metric"].share_target else ""])
    head = ["row", "redco", "best peer", "ratio", "target", "share of the ceiling", "target"]
    return "## Summary\n\n" + markdown(head, body) + "\n\n" if body else ""


INTRODUCTION = """# Performance

`bench/compare` writes this page. It runs redco and its peers alternately on one machine, with the
same shapes and the same number of CPUs. Repeat it with

    bench/compare setup
    bench/compare --output docs/performance.md

A value is the median of the rounds ({rounds}). The ratio is redco's speed divided by that of the
best peer; above 1, redco is faster. For memory and seconds it is the peer's value divided by
redco's. A target ratio is at most 95 % of what the peer leaves up to the ceiling.

A run during which other processes used more than a quarter of a CPU does not count if the program
has a quieter run. Other processes disturbed {disturbed} of the {all} runs of this page.
For {unknown} runs their load was not measured. A star marks values without a run that is known
to be quiet.

**Ceilings.** A decoding step has to read all weights and the KV cache, so its ceiling is the
streaming read. For several rows, the products can take longer than the reads; the ceiling is then
the longer of the two times (roofline). The ceiling of training and prefill is the peak speed of
matrix products: OpenBLAS's sgemm (or redco's tiles, the faster one), or for bf16 redco's own
kernels on AVX512-BF16, with operands in the cache. redco measures the ceilings in the same
process, right after the work. A peer does the same work, so its share is computed from its speed.

Values of other machines differ, and other processes on the same machine change them. Compare the
ratios.

"""


def profile_section(results):
    profiles = results.get("profiles")
    if not profiles:
        return ""
    text = """## Where the time goes

The shares of a training step, from redco's own profile (`train.profile`). `bench/compare profile`
repeats it. `redco report` shows the profile of any run that has one. Products include the bias and
the activation that a kernel fuses. Collectives include the time of waiting for other ranks;
transfers that overlap with computation do not count. `other` is the time between kernels.

"""
    return text + profile_table(profiles) + "\n\n"


def profile_table(profiles):
    kinds = ["products", "attention", "elementwise", "optimizer", "collectives", "other"]
    return markdown(["job", "step", *kinds],
                    [[p["title"], f"{p['step_s']:.2f} s"] + [percent(p["shares"].get(k, 0)) for k in kinds] for p in profiles])


def page(rows, results):
    rounds = sorted({len(s) for programs in results["rows"].values() for s in programs.values()})
    counted = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}" if rounds else "0"
    runs = [s for programs in results["rows"].values() for samples in programs.values() for s in samples]
    disturbed = sum(s.get("other_cpu", 0) > QUIET for s in runs)
    unknown = sum("other_cpu" not in s for s in runs)
    text = INTRODUCTION.format(rounds=counted, disturbed=disturbed, unknown=unknown, all=len(runs)) + machine_section(results["machine"])
    if results.get("notes"):
        text += "\n".join(textwrap.wrap("**Notes on this run.** " + " ".join(results["notes"]), 100)) + "\n\n"
    text += summary_section(rows, results)
    text += "".join(group_section(g, rows, results) for g in GROUPS)
    return (text + profile_section(results)).rstrip("\n") + "\n"
