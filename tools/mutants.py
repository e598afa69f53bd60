#!/usr/bin/env python3
"""Would a test notice? Each mutant of tests/mutants.txt is one changed line of src/; the tree is copied, the change made, what it
touches is built again, and the tests run until one fails.

    mutants.py [--only WORD] [--all] [--oracle] [--jobs N] [--markdown] [--list] [--keep DIR]

Tests of meaning are asked first: unit, property, the promises of the fuzz corpora, and with --oracle what is measured against data beside
the checkout. Only what passes them is given to tests of text (golden reports, outputs in documents), which one regeneration would
accept. --all asks every kind whatever the first ones say. Exit 1: fewer than the goal are caught, or a mutant no longer fits the code."""
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
    """A copy of the checkout as it is now, with a build of its own. Its tests take the library as a shared object with every symbol to be seen,
    so that a change costs one compilation and one link."""

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
        recipe = self.root / 'src/meson.build'
        text = recipe.read_text()
        changed = text.replace("static_library('oomsight_objects'", "shared_library('oomsight_objects'").replace('link_whole: liboomsight_objects', 'link_with: liboomsight_objects')
        changed = re.sub(r"(shared_library\('oomsight_objects'.*?)\n  pic: true,", r'\1', changed, flags=re.S)
        if changed.count("shared_library('oomsight_objects'") != 1: sys.exit('src/meson.build has another form: teach tools/mutants.py')
        recipe.write_text(changed)
        options = ['-Dbuildtype=plain', '-Ddebug=false', '-Doptimization=1', '-Dc_args=-fvisibility=default']
        if shutil.which('ld.lld'): options.append('-Dc_link_args=-fuse-ld=lld')
        code, out = run(['meson', 'setup', 'build', *options], self.root)
        if code: sys.exit(out)
        listed = re.findall(r'^(\S+): c_LINKER', run(['ninja', '-C', 'build', '-t', 'targets', 'all'], self.root)[1], re.M)
        # Unit tests that need a program around them are left out.
        self.units = [t for t in listed if t.startswith('tests/unit/test_') and not t.endswith('test_hub')]
        self.replays = [t for t in listed if t.startswith('tests/fuzz/replay_')]
        shared = ROOT.parent / 'shared'
        self.shared = shared if (shared / 'golden').is_dir() else None
        self.library = next(t for t in listed if t.startswith('src/liboomsight_objects.so'))

    def compile(self, kind):
        """What the tests of a kind run, and no more."""
        targets = {'unit': self.units, 'promise': self.replays, 'property': ['cli/oomsight', self.library]}.get(kind, ['cli/oomsight'])
        return run(['ninja', '-C', 'build', '-j', self.jobs, *targets], self.root)

    def first_failing(self, programs):
        """(name, words) of programs; the first that ends with anything but 0."""
        env = dict(os.environ, OOMSIGHT_FIXTURES=str(self.root / 'tests/fixtures'))
        for name, words in programs:
            try:
                done = subprocess.run([str(w) for w in words], cwd=self.root, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=150)
            except subprocess.TimeoutExpired:
                return [name]
            if done.returncode: return [name]
        return []

    def ask(self, kind, part):
        """What of this kind fails: a name, or nothing. Tests that name the part of the code are asked first."""
        oomsight, golden = self.build / 'cli/oomsight', self.shared / 'golden' if self.shared else None
        if kind == 'unit':
            near = {'plan': 'plan activation kv weights backend', 'replay': 'sim set snapshot', 'explain': 'explain follow loginput'}[part].split()
            units = sorted(self.units, key=lambda t: (near + [t[len('tests/unit/test_'):]]).index(t[len('tests/unit/test_'):]))
            return self.first_failing((os.path.basename(t), [self.build / t]) for t in units)
        if kind == 'promise':
            return self.first_failing((os.path.basename(t), [self.build / t, f'tests/fuzz/corpus/{t.split("replay_")[-1]}']) for t in self.replays)
        if kind == 'property':
            if part != 'plan': return []
            return self.first_failing([('properties of plans', [sys.executable, 'tests/plan/properties.py', oomsight, self.build / self.library, '--count', '60'])])
        if kind == 'oracle':
            if not golden: return []
            asked = {'plan': (('seeds', ['tools/check_seeds.py', oomsight, golden / 'models']), ('geometry', ['tools/score_geometry.py', oomsight, golden / 'geometry.jsonl'])),
                     'replay': (('allocator', ['tools/score_replay.py', oomsight, golden / 'allocator']), ('snapshots', ['tools/score_snapshots.py', oomsight, golden / 'snapshots'])),
                     'explain': (('seeds of explain', ['tools/check_seeds_explain.py', oomsight, self.shared / 'phantom-logs', golden / 'models']),)}
            return self.first_failing((name, [sys.executable, *words]) for name, words in asked[part])
        if kind == 'golden': return self.first_failing([('golden', ['tools/golden.sh', self.build])])
        return self.first_failing([('documents', [sys.executable, 'tools/check_docs.py', oomsight])])


def judge(tree, mutant, kinds, everything):
    """(kind, names) of what notices it; kind None: nothing does."""
    path = tree.root / mutant.file
    before = path.read_text()
    lines = [line for line in before.splitlines() if mutant.old in line]
    if len(lines) != 1: return 'stale', [f'{len(lines)} lines have it']
    path.write_text(before.replace(mutant.old, mutant.new, 1))
    try:
        caught = []
        for kind in kinds:
            code, out = tree.compile(kind)
            if code: return 'build', re.findall(r'error: (.*)', out)[:1]
            names = tree.ask(kind, mutant.file.split('/')[1])
            if names: caught.append((kind, names))
            if caught and not everything: break
        if not caught: return None, []
        return caught[0][0], [f'{k}: {", ".join(n)}' for k, n in caught]
    finally:
        path.write_text(before)


def main():
    parser = argparse.ArgumentParser(description='mutation check')
    parser.add_argument('--only', default='', help='mutants whose name or file has this word')
    parser.add_argument('--all', action='store_true', help='ask every kind of test')
    parser.add_argument('--oracle', action='store_true', help='with data beside the checkout: its oracles too')
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
        kinds = [k for k in MEANING + TEXT if k != 'oracle' or args.oracle and tree.shared]
        for kind in kinds:
            code, out = tree.compile(kind)
            if code: sys.exit(out[-3000:])
            for part in ('plan', 'replay', 'explain') if kind == 'oracle' else ('plan',):
                names = tree.ask(kind, part)
                if names: sys.exit(f'without any change this fails: {kind}: {", ".join(names)}')
        print(f'asked: {", ".join(kinds)}', flush=True)
        results = []
        for mutant in mutants:
            kind, names = judge(tree, mutant, kinds, args.all)
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
