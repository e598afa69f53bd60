#!/usr/bin/env python3
"""Would a test notice? Each mutant of tests/mutants.txt is one changed line of src/; the tree is copied, the change made, what it
touches is built again, and the tests run until one fails.

    mutants.py [--only WORD] [--all] [--jobs N] [--markdown] [--list] [--keep DIR]

Tests of meaning are asked first: unit, property, the promises of the fuzz corpora, and with data beside the checkout the oracles.
Only what passes them is given to tests of text (golden reports, outputs in documents), which one regeneration would accept.
--all asks every kind whatever the first ones say. Exit 1: fewer than the goal are caught, or a mutant no longer fits the code."""
import argparse, collections, os, pathlib, re, shutil, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOAL = 0.95
MEANING = ('unit', 'property', 'promise', 'oracle')
TEXT = ('golden', 'documents')
Mutant = collections.namedtuple('Mutant', 'name file old new')


def read_list(path):
    """Blocks: '## file', then '# name', '- old', '+ new' (a lone '+' removes the line)."""
    mutants, file, name, old = [], None, None, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith('## '): file = line[3:].strip()
        elif line.startswith('# ') and file: name = line[2:].strip()
        elif line.startswith('- '): old = line[2:]
        elif line.startswith('+'):
            if not (file and name and old): sys.exit(f'{path}:{number}: a change without its line')
            mutants.append(Mutant(name, file, old, line[2:]))
            name = old = None
    return mutants


def run(command, cwd, timeout=600):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    return done.returncode, done.stdout.decode(errors='replace')


class Tree:
    """A copy of the checkout as it is now, with a build of its own."""

    def __init__(self, folder, jobs):
        self.root, self.build, self.jobs = pathlib.Path(folder), pathlib.Path(folder) / 'build', str(jobs)
        names = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=ROOT, check=True,
                               stdout=subprocess.PIPE).stdout.decode().split('\0')
        there = [n for n in names if n and (ROOT / n).is_file()]
        tar = subprocess.Popen(['tar', '-c', '--null', '-T', '-'], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        unpack = subprocess.Popen(['tar', '-x'], cwd=self.root, stdin=tar.stdout)
        tar.stdin.write('\0'.join(there).encode())
        tar.stdin.close()
        if unpack.wait() or tar.wait(): sys.exit('the tree could not be copied')
        options = ['-Dbuildtype=plain', '-Ddebug=false', '-Doptimization=1'] + (['-Dc_link_args=-fuse-ld=lld'] if shutil.which('ld.lld') else [])
        code, out = run(['meson', 'setup', 'build', *options], self.root)
        if code: sys.exit(out)
        listed = re.findall(r'^(\S+): c_LINKER', run(['ninja', '-C', 'build', '-t', 'targets', 'all'], self.root)[1], re.M)
        self.units = [t for t in listed if t.startswith('tests/unit/test_') and not t.endswith('test_hub')]
        self.replays = [t for t in listed if t.startswith('tests/fuzz/replay_')]
        shared = ROOT.parent / 'shared'
        self.shared = shared if (shared / 'golden').is_dir() else None
        tests = run(['meson', 'test', '-C', 'build', '--list', '--no-rebuild'], self.root)[1]
        self.property = sorted({line.split(' / ')[-1].strip() for line in tests.splitlines() if 'propert' in line})

    def compile(self, kind):
        """What the tests of a kind run, and no more: linking is most of the work."""
        targets = {'unit': self.units, 'promise': self.replays, 'property': []}.get(kind, ['cli/oomsight'])
        return run(['ninja', '-C', 'build', '-j', self.jobs, *targets], self.root)

    def meson(self, *words):
        return run(['meson', 'test', '-C', 'build', '--no-rebuild', '--num-processes', self.jobs, *words], self.root)

    def failures(self, output):
        return sorted({m.group(1) for m in re.finditer(r'^\s*\d+/\d+ (?:oomsight:)?(?:\S+ / )?(\S+)\s+(?:FAIL|TIMEOUT|ERROR)', output, re.M)})

    def ask(self, kind):
        """What of this kind fails: names, or None when there is nothing of it to ask."""
        oomsight = str(self.build / 'cli/oomsight')
        if kind == 'unit':
            names = [os.path.basename(t)[len('test_'):] for t in self.units]
            code, out = self.meson('--suite', 'unit', *names)
            return (self.failures(out) or ['a test']) if code else []
        if kind in ('golden', 'promise'):
            code, out = self.meson('--suite', {'promise': 'fuzz'}.get(kind, kind))
            return (self.failures(out) or ['a test']) if code else []
        if kind == 'property':
            if not self.property: return None
            code, out = self.meson(*self.property)
            return (self.failures(out) or ['a test']) if code else []
        if kind == 'oracle':
            if not self.shared: return None
            golden = self.shared / 'golden'
            asked = (('seeds', ['tools/check_seeds.py', oomsight, golden / 'models']),
                     ('geometry', ['tools/score_geometry.py', oomsight, golden / 'geometry.jsonl']),
                     ('allocator', ['tools/score_replay.py', oomsight, golden / 'allocator']),
                     ('snapshots', ['tools/score_snapshots.py', oomsight, golden / 'snapshots']),
                     ('seeds of explain', ['tools/check_seeds_explain.py', oomsight, self.shared / 'phantom-logs', golden / 'models']))
            return [name for name, words in asked if run([sys.executable] + [str(w) for w in words], self.root)[0]]
        return ['documents'] if run([sys.executable, 'tools/check_docs.py', oomsight], self.root)[0] else []


def judge(tree, mutant, everything):
    """(kind, names) of what notices it; kind None: nothing does."""
    path = tree.root / mutant.file
    before = path.read_text()
    lines = [line for line in before.splitlines() if mutant.old in line]
    if len(lines) != 1: return 'stale', [f'{len(lines)} lines have it']
    path.write_text(before.replace(mutant.old, mutant.new, 1))
    try:
        caught = []
        for kind in MEANING + TEXT:
            if kind == 'property' and not tree.property: continue
            code, out = tree.compile(kind)
            if code: return 'build', re.findall(r'error: (.*)', out)[:1]
            names = tree.ask(kind)
            if names: caught.append((kind, names))
            if caught and not everything: break
        if not caught: return None, []
        return caught[0][0], [f'{k}: {", ".join(n[:3])}' for k, n in caught]
    finally:
        path.write_text(before)


def main():
    parser = argparse.ArgumentParser(description='mutation check')
    parser.add_argument('--only', default='', help='mutants whose name or file has this word')
    parser.add_argument('--all', action='store_true', help='ask every kind of test')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--markdown', action='store_true', help='a table at the end')
    parser.add_argument('--list', action='store_true', help='say which there are, and which no longer fit the code')
    parser.add_argument('--keep', help='a folder for the copy, kept for the next run')
    args = parser.parse_args()
    mutants = [m for m in read_list(ROOT / 'tests/mutants.txt') if args.only in m.name or args.only in m.file]
    if args.list:
        stale = 0
        for m in mutants:
            count = sum(m.old in line for line in (ROOT / m.file).read_text().splitlines())
            stale += count != 1
            print(f'{m.file}: {m.name}{"" if count == 1 else f"  STALE: {count} lines have it"}')
        print(f'{len(mutants)} mutants, {stale} stale')
        return 1 if stale else 0
    with tempfile.TemporaryDirectory(prefix='mutants-') as scratch:
        if args.keep: os.makedirs(args.keep, exist_ok=True)
        tree = Tree(args.keep or scratch, args.jobs)
        for kind in MEANING + TEXT:
            code, out = tree.compile(kind)
            if code: sys.exit(out[-3000:])
            names = tree.ask(kind)
            if names: sys.exit(f'without any change these fail: {kind}: {", ".join(names)}')
        results = []
        for mutant in mutants:
            kind, names = judge(tree, mutant, args.all)
            results.append((mutant, kind, names))
            print(f'{kind or "NOT CAUGHT":12}{mutant.file}: {mutant.name}  [{"; ".join(names)}]', flush=True)
    counts = collections.Counter('nothing' if kind is None else kind for _, kind, _ in results)
    judged = [r for r in results if r[1] not in ('stale', 'build')]
    caught = [r for r in judged if r[1]]
    meaning = sum(counts[k] for k in MEANING)
    if args.markdown:
        print('\n| part | mutants | caught | by meaning | by text alone |\n| --- | --- | --- | --- | --- |')
        for part in ('plan', 'explain', 'replay'):
            of = [kind for m, kind, _ in judged if m.file.startswith(f'src/{part}/')]
            print(f'| {part} | {len(of)} | {sum(k is not None for k in of)} | {sum(k in MEANING for k in of)} | {sum(k in TEXT for k in of)} |')
    print(f'{len(judged)} mutants: {len(caught)} caught ({100 * len(caught) // max(1, len(judged))} %), {meaning} by tests of meaning, '
          f'{len(caught) - meaning} by text alone, {counts["nothing"]} by nothing; {counts["stale"]} stale, {counts["build"]} do not build')
    return 0 if len(caught) >= GOAL * len(judged) and not counts['stale'] and not counts['build'] else 1


if __name__ == '__main__':
    sys.exit(main())
