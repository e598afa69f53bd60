#!/usr/bin/env python3
"""Would a test notice? Each mutant of tests/mutants.txt is one changed line of the code or of its data; in one copy of the tree the change is
made, what it touches is built again, and the tests that are named beside it run until one fails.

    mutants.py [--only WORD] [--part SHARE] [--seed N] [--learn] [--jobs N] [--list] [--keep DIR]

--part 0.1 takes a random tenth, with the seed it prints; MUTANTS=all in the environment takes all of them whatever --part says. --learn finds
the test for mutants that name none and writes it into the list. --list runs nothing: which there are, and which no longer fit the code.
Exit 1: a mutant survives that is not marked, more than one in twenty are marked, or one no longer fits or does not build."""
import argparse, collections, json, os, pathlib, random, re, resource, shutil, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / 'tests/mutants.txt'
GOAL = 0.95
FIRST = {'plan': 'plan activation kv weights backend arguments', 'replay': 'sim set snapshot', 'explain': 'explain reason follow loginput', 'log': 'loginput',
         'follow': 'follow', 'ledger': 'ledger', 'guard': 'shim guard', 'data': 'rules facts'}
SLOW_LAST = ('golden',)  # asked when no test of one module notices
Mutant = collections.namedtuple('Mutant', 'name file old new tests survives line')


def read_list(path):
    """Blocks: '## file', then '# name', '- old', '+ new' (a lone '+' removes the piece). '~ a, b' names the tests: below '##' those of
    the file, below '#' those of one mutant. '! reason' marks one that survives."""
    mutants, file, of_file = [], None, []
    name = old = survives = None
    tests = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith('## '):
            file, of_file, name, old = line[3:].strip(), [], None, None
        elif line.startswith('# ') and file:
            name, tests, survives = line[2:].strip(), [], None
        elif line.startswith('~ '):
            given = [t.strip() for t in line[2:].split(',')]
            if name: tests = given
            else: of_file = given
        elif line.startswith('! '): survives = line[2:].strip()
        elif line.startswith('- '): old = line[2:]
        elif line.startswith('+'):
            if not (file and name and old): sys.exit(f'{path}:{number}: a change without its line')
            mutants.append(Mutant(name, file, old, line[2:], tests or of_file, survives, number))
            name = old = survives = None
            tests = []
    return mutants


def stale(root, mutant):
    """How many lines have the piece, where that is not one; else None."""
    path = root / mutant.file
    count = sum(mutant.old in line for line in path.read_text().splitlines()) if path.is_file() else 0
    return None if count == 1 else count


def run(command, cwd, timeout=900):
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
        unpack = subprocess.Popen(['tar', '-x', '-m'], cwd=self.root, stdin=tar.stdout)
        tar.stdin.write('\0'.join(there).encode())
        tar.stdin.close()
        if unpack.wait() or tar.wait(): sys.exit('the tree could not be copied')
        recipe = self.root / 'src/meson.build'
        text = recipe.read_text()
        changed = text.replace("static_library('oomsight_objects'", "shared_library('oomsight_objects'").replace('link_whole: liboomsight_objects', 'link_with: liboomsight_objects')
        changed = re.sub(r"(shared_library\('oomsight_objects'.*?)\n  pic: true,", r'\1', changed, flags=re.S)
        if changed.count("shared_library('oomsight_objects'") != 1: sys.exit('src/meson.build has another form: teach tools/mutants.py')
        recipe.write_text(changed)
        if not (self.build / 'build.ninja').exists():
            options = ['-Dbuildtype=plain', '-Ddebug=false', '-Doptimization=1', '-Dchecks=true', '-Dc_args=-fvisibility=default']
            if shutil.which('ld.lld'): options.append('-Dc_link_args=-fuse-ld=lld')
            code, out = run(['meson', 'setup', 'build', *options], self.root)
        else: code, out = run(['ninja', '-C', 'build', 'build.ninja'], self.root)
        if code: sys.exit(out)
        files = {t['id']: [os.path.relpath(f, self.build) for f in t['filename']] for t in json.loads(run(['meson', 'introspect', 'build', '--targets'], self.root)[1])}
        self.tests = {}
        for test in json.loads(run(['meson', 'introspect', 'build', '--tests'], self.root)[1]):
            needs = [f for d in test['depends'] for f in files.get(d, [])]
            self.tests[test['name']] = test, sorted(set(needs) | {'cli/oomsight'} if not needs or test['suite'] != ['oomsight:unit'] else needs)

    def compile(self, test):
        return run(['ninja', '-C', 'build', '-j', self.jobs, *self.tests[test][1]], self.root)

    def fails(self, name):
        """Whether a test fails; one that is skipped did not look. One that goes on is ended by its processor time: a busy machine notices no mutant."""
        test = self.tests[name][0]
        most = max(60, min(300, test['timeout']))
        try:
            done = subprocess.run(test['cmd'], cwd=test['workdir'] or self.build, env=dict(os.environ, **test['env']), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10 * most,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)))
        except subprocess.TimeoutExpired:
            return True
        return done.returncode not in (0, 77)

    def near(self, mutant):
        """Tests to ask for a mutant that names none: of its part first, then every other unit test and corpus, then reports."""
        parts = mutant.file.split('/')
        first = [FIRST[p] for p in parts if p in FIRST]
        first = ['shim guard'] if 'guard' in parts else ' '.join(first[:1]).split()
        unit = [n for n, (t, needs) in self.tests.items() if t['suite'] == ['oomsight:unit'] and t['cmd'][0].startswith(str(self.build / 'tests/unit'))]
        corpora = [n for n, (t, _) in self.tests.items() if t['suite'] == ['oomsight:fuzz']]
        return [n for n in dict.fromkeys([*first, *unit, *corpora, *SLOW_LAST]) if n in self.tests]


def judge(tree, mutant, tests):
    """The test that notices it, None when none does, or ('stale'|'build'|'unknown', words)."""
    count = stale(tree.root, mutant)
    if count is not None: return 'stale', f'{count} lines have it'
    unknown = [t for t in tests if t not in tree.tests]
    if unknown: return 'unknown', f'no test is called {unknown[0]}'
    path = tree.root / mutant.file
    before = path.read_text()
    path.write_text(before.replace(mutant.old, mutant.new, 1))
    try:
        for test in tests:
            code, out = tree.compile(test)
            if code: return 'build', (re.findall(r'error: (.*)', out) or [out[-300:]])[0]
            if tree.fails(test): return test
        return None
    finally:
        path.write_text(before)


def learn(mutant, test):
    """The test, written into the list in front of the mutant's change."""
    lines = LIST.read_text().split('\n')
    at = next(n for n, line in enumerate(lines) if line == f'# {mutant.name}' and lines[n + 1].startswith('- ' + mutant.old))
    lines.insert(at + 1, f'~ {test}')
    LIST.write_text('\n'.join(lines))


def chosen(mutants, part, seed):
    if part >= 1 or os.environ.get('MUTANTS') == 'all': return mutants
    return random.Random(seed).sample(mutants, max(1, -(-len(mutants) * int(part * 100) // 100)))


def main():
    parser = argparse.ArgumentParser(description='mutation check')
    parser.add_argument('--only', default='', help='mutants whose name or file has this word')
    parser.add_argument('--part', type=float, default=1, help='a random share of them')
    parser.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    parser.add_argument('--learn', action='store_true', help='find the test for those that name none')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--list', action='store_true', help='say which there are, and which no longer fit the code')
    parser.add_argument('--keep', help='a folder for the copy, kept for the next run')
    args = parser.parse_args()
    everything = read_list(LIST)
    marked = sum(m.survives is not None for m in everything)
    if marked > (1 - GOAL) * len(everything): sys.exit(f'{marked} of {len(everything)} mutants are marked as surviving: at most one in twenty')
    mutants = [m for m in everything if args.only in m.name or args.only in m.file]
    if args.list:
        old = [(m, stale(ROOT, m)) for m in mutants]
        for m, count in old: print(f'{m.file}: {m.name}{"" if count is None else f"  STALE: {count} lines have it"}')
        print(f'{len(mutants)} mutants, {sum(c is not None for _, c in old)} stale, {marked} known to survive')
        return 1 if any(c is not None for _, c in old) else 0
    mutants = chosen(mutants, args.part, args.seed)
    if args.learn: mutants = [m for m in mutants if not m.tests]
    print(f'{len(mutants)} of {len(everything)} mutants, seed {args.seed}', flush=True)
    with tempfile.TemporaryDirectory(prefix='mutants-') as scratch:
        if args.keep: os.makedirs(args.keep, exist_ok=True)
        tree = Tree(args.keep or scratch, args.jobs)
        for test in sorted({t for m in mutants for t in m.tests if t in tree.tests}):
            code, out = tree.compile(test)
            if code: sys.exit(out[-3000:])
            if tree.fails(test): sys.exit(f'without any change this fails: {test}')
        results = []
        for mutant in mutants:
            found = judge(tree, mutant, mutant.tests or tree.near(mutant))
            results.append((mutant, found))
            words = 'SURVIVES' if found is None else f'{found[0]}: {found[1]}' if isinstance(found, tuple) else found
            print(f'{words:16}  {mutant.file}: {mutant.name}{f"  (known: {mutant.survives})" if found is None and mutant.survives else ""}', flush=True)
            if args.learn and isinstance(found, str): learn(mutant, found)
    unfit = [m for m, found in results if isinstance(found, tuple)]
    killed = [m for m, found in results if isinstance(found, str)]
    new = [m for m, found in results if found is None and not m.survives]
    print(f'{len(killed)} of {len(results)} mutants killed ({100 * len(killed) // max(1, len(results))} %), {len(results) - len(killed) - len(unfit)} survive, '
          f'{len(new)} of them not known to, {len(unfit)} unfit')
    return 1 if new or unfit else 0


if __name__ == '__main__':
    sys.exit(main())
