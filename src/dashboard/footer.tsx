import { Shortcuts } from './navigation.tsx';
import { type Context, type Html, pathOf } from './page.ts';

/** Chapters of the documentation by the beginning of the paths that they explain. */
const CHAPTERS: Readonly<Record<string, string>> = {};

/** The documentation of a page. */
export function docsPath(path: string): string {
  const [chapter] = Object.keys(CHAPTERS).filter((start) => path.startsWith(`/dashboard${start}`));
  return chapter === undefined ? '/docs' : `/docs/${CHAPTERS[chapter]}`;
}

/** What is below every page: the time zone of its times, the documentation, and the keyboard shortcuts. */
export function Footer({ context }: { context: Context }): Html {
  return (
    <footer class="foot">
      <p>
        Times are in <span data-zone="">UTC</span>. <a href="/dashboard/account/time-zone">Change time zone</a>
      </p>
      <a href={docsPath(pathOf(context))}>Documentation</a>
      <Shortcuts />
    </footer>
  );
}
