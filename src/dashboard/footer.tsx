import { Shortcuts } from './navigation.tsx';
import { type Context, type Html, pathOf } from './page.ts';

/** Where the documentation explains pages, by the beginning of their paths below `/dashboard`. The others link to its index. */
export const CHAPTERS: Readonly<Record<string, string>> = {
  '/checklist': 'quickstart',
  '/emails': 'sending',
  '/batches': 'sending#batch-sending',
  '/chatapp': 'sending#whatsapp-messages',
  '/sms': 'sending#sms',
  '/domains': 'sending#domains',
  '/keys': 'authentication',
  '/requests': 'sending#api-request-log',
  '/numbers': 'providers',
  '/webhooks': 'webhooks',
  '/suppressions': 'sending#suppression-list',
  '/members': 'accounts#roles',
  '/settings': 'sending#quota',
  '/account': 'accounts',
};

/** The documentation of a page. */
function docsPath(path: string): string {
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
