import { type Html, pathOf, type Visit } from './page.ts';

interface Entry {
  readonly name: string;
  /** The key that opens the page after `g`. */
  readonly letter: string;
}
const entry = (name: string, letter: string): Entry => ({ name, letter });

/** Pages by group and path below `/dashboard`. */
const NAVIGATION: Readonly<Record<string, Readonly<Record<string, Entry>>>> = {
  '': { '': entry('Overview', 'o') },
  Messages: {
    '/emails': entry('Emails', 'e'),
    '/batches': entry('Batches', 'b'),
    '/chatapp': entry('WhatsApp', 'w'),
    '/sms': entry('SMS', 's'),
  },
  Setup: {
    '/domains': entry('Domains', 'd'),
    '/keys': entry('API keys', 'k'),
    '/requests': entry('API requests', 'r'),
    '/numbers': entry('WhatsApp numbers', 'n'),
    '/webhooks': entry('Webhooks', 'h'),
    '/suppressions': entry('Suppressions', 'p'),
  },
  Organization: {
    '/members': entry('Members', 'm'),
    '/audit': entry('Audit log', 'a'),
    '/settings': entry('Settings', 't'),
  },
};

/** The navigation: a column beside the page, or on a phone a popover that `NavigationButton` opens. */
export function Navigation({ visit }: { visit: Visit }): Html {
  const path = pathOf(visit);
  const current = (to: string) =>
    path === to ? 'page' : to !== '/dashboard' && path.startsWith(`${to}/`) ? 'true' : undefined;
  return (
    <nav class="main" id="navigation" aria-label="Main" popover="auto">
      {Object.entries(NAVIGATION).map(([title, entries]) => (
        <div>
          {title !== '' && <h2 safe>{title}</h2>}
          <ul>
            {Object.entries(entries).map(([to, { name, letter }]) => (
              <li>
                <a href={`/dashboard${to}`} aria-current={current(`/dashboard${to}`)} data-go={letter} safe>
                  {name}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

export function NavigationButton(): Html {
  return (
    <button type="button" class="navigation" popovertarget="navigation">
      Menu
    </button>
  );
}

const KEYS = [
  ['/', 'Search emails'],
  ['j', 'Next row'],
  ['k', 'Previous row'],
  ['Enter', 'Open the row'],
  ['?', 'Show the keyboard shortcuts'],
] as const;

/** The dialog that `?` opens. Scripts handle the keys, so a script shows its button. */
export function Shortcuts(): Html {
  const pages = Object.values(NAVIGATION).flatMap((entries) => Object.values(entries));
  return (
    <>
      <button type="button" class="small" popovertarget="shortcuts" data-script="" hidden>
        Keyboard shortcuts
      </button>
      <div popover="auto" id="shortcuts" class="confirm shortcuts" role="dialog" aria-labelledby="shortcuts-title">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <dl>
          {KEYS.map(([key, what]) => (
            <div>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
          {pages.map(({ name, letter }) => (
            <div>
              <dt>
                <kbd>g</kbd> <kbd safe>{letter}</kbd>
              </dt>
              <dd safe>{name}</dd>
            </div>
          ))}
        </dl>
        <div class="row">
          <button type="button" popovertarget="shortcuts" popovertargetaction="hide" autofocus>
            Close
          </button>
        </div>
      </div>
    </>
  );
}
