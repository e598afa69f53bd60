#!/usr/bin/env python3
"""Which lines do tests and corpora reach? Builds with clang's coverage, runs the suites, replays corpora and made inputs, and prints a table
by folder of src/.

    coverage.py [--build DIR] [--suites unit,golden,cli,fuzz] [--corpora DIR] [--markdown] [--files FOLDER]

--corpora: more inputs, a folder per fuzz target (what FUZZ_CORPUS kept). --files lists the files of a folder, least reached first."""
import argparse, collections, glob, json, os, pathlib, shutil, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = '-fprofile-instr-generate -fcoverage-mapping'
READERS = ('command', 'model', 'log', 'trace', 'matrix', 'facts', 'match')


def tool(name):
    for word in (name, name + '-14', name + '-15', name + '-16'):
        if shutil.which(word): return word
    print(f'{name} is not installed')
    sys.exit(77)


def run(words, **more):
    return subprocess.run([str(w) for w in words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


def build(folder):
    if not (folder / 'build.ninja').is_file():
        done = run(['meson', 'setup', folder, '-Dbuildtype=debugoptimized', '-Doptimization=1', f'-Dc_args={FLAGS}', f'-Dc_link_args={FLAGS}'],
                   env=dict(os.environ, CC='clang', LLVM_PROFILE_FILE='/dev/null'))
        if done.returncode: sys.exit(done.stdout.decode())
    done = run(['ninja', '-C', folder, '-j2'], env=dict(os.environ, LLVM_PROFILE_FILE='/dev/null'))
    if done.returncode: sys.exit(done.stdout.decode()[-4000:])


def exercise(folder, suites, corpora, profiles):
    """The suites, then what libFuzzer was given or kept; tests that fail are named and count nevertheless."""
    env = dict(os.environ, LLVM_PROFILE_FILE=f'{profiles}/%8m.profraw')
    for suite in suites:
        done = run(['meson', 'test', '-C', folder, '--no-rebuild', '--num-processes', '2', '-t', '4', '--suite', suite], env=env)
        for line in done.stdout.decode(errors='replace').splitlines():
            if ' FAIL ' in line or ' TIMEOUT ' in line: print(line.strip(), file=sys.stderr)
    with tempfile.TemporaryDirectory() as made:
        seeds = ROOT / 'tests/fuzz/seeds.py'
        if seeds.is_file(): run([sys.executable, seeds, made])
        for replay in sorted(glob.glob(f'{folder}/tests/fuzz/replay_*')):
            if not os.access(replay, os.X_OK) or os.path.isdir(replay): continue
            target = os.path.basename(replay)[len('replay_'):]
            for base in [made] + ([corpora] if corpora else []):
                if os.path.isdir(f'{base}/{target}') and os.listdir(f'{base}/{target}'): run([replay, f'{base}/{target}'], env=env)


def measure(folder, profiles):
    """{file: (lines, reached)} of the library as a whole."""
    merged = f'{profiles}/all.profdata'
    raw = glob.glob(f'{profiles}/*.profraw')
    done = run([tool('llvm-profdata'), 'merge', '-sparse', '-failure-mode=all', *raw, '-o', merged])
    if done.returncode: sys.exit(done.stdout.decode())
    library = sorted(glob.glob(f'{folder}/src/liboomsight.so*'), key=len)[0]
    done = subprocess.run([tool('llvm-cov'), 'export', '-summary-only', f'-instr-profile={merged}', library], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    files = {}
    for entry in json.loads(done.stdout)['data'][0]['files']:
        name = os.path.relpath(os.path.join(folder, entry['filename']) if not os.path.isabs(entry['filename']) else entry['filename'], ROOT)
        lines = entry['summary']['lines']
        if name.startswith('src/') and name.endswith('.c') and lines['count']: files[name] = (lines['count'], lines['covered'])
    return files


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build-coverage')
    parser.add_argument('--suites', default='unit,golden,cli,fuzz')
    parser.add_argument('--corpora')
    parser.add_argument('--markdown', action='store_true')
    parser.add_argument('--files', default=None)
    args = parser.parse_args()
    tool('llvm-cov')
    folder = ROOT / args.build
    build(folder)
    with tempfile.TemporaryDirectory(prefix='coverage-') as profiles:
        exercise(folder, [s for s in args.suites.split(',') if s], args.corpora, profiles)
        files = measure(folder, profiles)
    sums = collections.defaultdict(lambda: [0, 0])
    for name, (count, covered) in files.items():
        part = name.split('/')[1] if name.count('/') > 1 else 'api'
        groups = [part, 'all'] + (['readers'] if part in READERS else [])
        for group in groups: sums[group][0] += count; sums[group][1] += covered
    form = '| {} | {} | {} | {:.1f} % |' if args.markdown else '{:32}{:>8}{:>9}{:>8.1f} %'
    print('| folder | lines | reached | |\n| --- | --- | --- | --- |' if args.markdown else f'{"folder":32}{"lines":>8}{"reached":>9}')
    for part in sorted(sums, key=lambda p: (p == 'all', p.startswith('readers'), p)): print(form.format(part, *sums[part], 100 * sums[part][1] / sums[part][0]))
    if args.files is not None:
        for name in sorted(files, key=lambda n: files[n][1] / files[n][0]):
            if name.startswith(f'src/{args.files}'): print(f'{name:48}{files[name][0]:>6}{100 * files[name][1] / files[name][0]:>8.1f} %')


if __name__ == '__main__':
    main()
