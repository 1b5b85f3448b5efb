import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, chmod, constants, mkdir, readdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';
import { createOnce, cacheFolder, exists } from '../../dev/environment/cache.ts';
import { isFulfilled, run } from '../../dev/environment/command.ts';
import { Problem } from '../../dev/environment/problem.ts';
import { makeProgress, type Progress, type Step } from '../../dev/environment/progress.ts';

/** An npm package with a headless Chromium for Linux on x64. Its next version needs Node 22. */
const PACKAGE = '@sparticuz/chromium';
const VERSION = '143.0.4';
const SHA512 = '/6I7uQTRhRDD2/gGPQ1Gkf+Dqk0RYDACPJDZfSzz0OWk4JmUTonNHPXbrn6UIklOHlnDLf8xAAzkOZKB/cJpLA==';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const ON_MACOS = ['Chromium.app/Contents/MacOS/Chromium', 'Google Chrome.app/Contents/MacOS/Google Chrome'];

const PROGRAM = 'chromium-with-libraries';
/** Starts the browser with the libraries and fonts of the package, which a machine without a browser may lack. */
const WRAPPER = `#!/bin/sh
here=$(dirname "$0")
export LD_LIBRARY_PATH="$here/lib\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FONTCONFIG_PATH="$here/fonts"
exec "$here/chromium" "$@"
`;
/** Replaces the file of the package, which names a folder of another machine. */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;

const ADVICE = [
  'The tests of the dashboard need a browser. Any one of these helps:',
  '  - install Chromium (Debian: apt-get install chromium; macOS: brew install --cask chromium)',
  '  - name a Chromium or Chrome that is there in CHROMIUM_PATH',
].join('\n');

/**
 * The path of a Chromium: that of `CHROMIUM_PATH`, an installed one, or one in the cache, which is downloaded from the npm
 * registry (65 MB).
 * @throws Problem that names what to install
 */
export async function findChromium(
  env: NodeJS.ProcessEnv,
  progress: Progress = makeProgress(process.stdout),
  signal?: AbortSignal,
): Promise<string> {
  const named = env['CHROMIUM_PATH'];
  if (named) {
    if (await canRun(named)) return named;
    throw new Problem(`CHROMIUM_PATH names no program that can be run: ${named}`);
  }
  for (const path of installedPaths(env)) if (await canRun(path)) return path;
  const folder = join(cacheFolder(env), `chromium-${VERSION}-${process.platform}-${process.arch}`);
  if (!(await exists(folder))) {
    await progress.step(`Chromium ${VERSION}`, async (step) => {
      const onWait = () => step.detail('another process is getting it; waiting for that');
      await createOnce(folder, (workspace) => installChromium(workspace, env, step, signal), { signal, onWait });
    });
  }
  return join(folder, PROGRAM);
}

function installedPaths(env: NodeJS.ProcessEnv): string[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const onPath = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  return process.platform === 'darwin' ? [...onPath, ...ON_MACOS.map((app) => `/Applications/${app}`)] : onPath;
}

function canRun(path: string): Promise<boolean> {
  return isFulfilled(access(path, constants.X_OK));
}

async function installChromium(
  workspace: string,
  env: NodeJS.ProcessEnv,
  step: Step,
  signal: AbortSignal | undefined,
): Promise<string> {
  try {
    if (process.platform !== 'linux' || process.arch !== 'x64') {
      throw new Error(`there is none for ${process.platform} on ${process.arch}`);
    }
    const packed = await fetchPackage(workspace, env, step, signal);
    step.detail('unpacking');
    const made = join(workspace, 'made');
    await unpack(packed, made, signal);
    await run(join(made, PROGRAM), ['--no-sandbox', '--version'], { signal });
    return made;
  } catch (error) {
    signal?.throwIfAborted();
    throw new Problem(`${ADVICE}\nWhat was tried: ${PACKAGE} of the npm registry: ${(error as Error).message}`);
  }
}

/** @returns the folder of the package's files */
async function fetchPackage(
  workspace: string,
  env: NodeJS.ProcessEnv,
  step: Step,
  signal: AbortSignal | undefined,
): Promise<string> {
  step.detail('npm fetches about 65 MB');
  // The npm that runs `npm test`, with its settings; it may not be on the PATH.
  const npm = env['npm_execpath'];
  const [command, ...args] = npm?.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm'];
  await run(command, [...args, 'pack', `${PACKAGE}@${VERSION}`, '--pack-destination', workspace], {
    cwd: workspace,
    signal,
  });
  const archive = (await readdir(workspace)).find((name) => name.endsWith('.tgz'));
  if (archive === undefined) throw new Error('npm pack made no file');
  const hash = createHash('sha512');
  await pipeline(createReadStream(join(workspace, archive)), hash);
  if (hash.digest('base64') !== SHA512) throw new Error('it is not the file that was tested');
  await run('tar', ['--no-same-owner', '-xzf', archive], { cwd: workspace, signal });
  return join(workspace, 'package', 'bin');
}

async function unpack(packed: string, made: string, signal: AbortSignal | undefined): Promise<void> {
  const inflate = (name: string, path: string) =>
    pipeline(createReadStream(join(packed, name)), createBrotliDecompress(), createWriteStream(path), { signal });
  await mkdir(made);
  await inflate('chromium.br', join(made, 'chromium'));
  await chmod(join(made, 'chromium'), 0o755);
  // Libraries into `lib`, the fonts with their settings into `fonts`, and the software renderer beside the program.
  for (const [name, folder] of Object.entries({ al2023: made, fonts: join(made, 'fonts'), swiftshader: made })) {
    const archive = join(packed, `${name}.tar`);
    await inflate(`${name}.tar.br`, archive);
    await mkdir(folder, { recursive: true });
    await run('tar', ['--no-same-owner', '-xf', archive, '-C', folder], { signal });
  }
  await writeFile(join(made, 'fonts', 'fonts.conf'), FONTS);
  await writeFile(join(made, PROGRAM), WRAPPER, { mode: 0o755 });
}
