import { Shortcuts } from './navigation.tsx';
import { type Context, type Html, pathOf } from './page.ts';

/**
 * The documentation page for dashboard pages whose path below `/dashboard` starts with the key. Other pages link to the
 * index.
 */
export const CHAPTERS: Readonly<Record<string, string>> = {
  '/checklist': 'quickstart',
  '/emails': 'statuses',
  '/batches': 'sending#batch-sending',
  '/chatapp': 'whatsapp-sms#whatsapp-messages',
  '/sms': 'whatsapp-sms#sms',
  '/domains': 'sending#domains',
  '/keys': 'authentication',
  '/requests': 'sending#api-request-log',
  '/numbers': 'providers',
  '/webhooks': 'webhooks',
  '/suppressions': 'statuses#suppression-list',
  '/members': 'accounts#roles',
  '/settings': 'sending#quota',
  '/account': 'accounts',
};

/** Returns the path of the documentation for a page. */
function docsPath(path: string): string {
  const [chapter] = Object.keys(CHAPTERS).filter((start) => path.startsWith(`/dashboard${start}`));
  return chapter === undefined ? '/docs' : `/docs/${CHAPTERS[chapter]}`;
}

/** The footer of every page: the time zone of its times, the documentation and the keyboard shortcuts. */
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
