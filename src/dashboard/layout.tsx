import type { Children } from '@kitajs/html';
import { escapeHtml } from '../lib/html.ts';
import type { OrganizationOfUser } from '../store/accounts/sessions.ts';
import { Time } from './elements.tsx';
import { Form } from './form-elements.tsx';
import { Footer } from './footer.tsx';
import { Navigation, NavigationButton } from './navigation.tsx';
import type { Context, Html, SignedIn, Visit } from './page.ts';

/** htmx options. Our Content-Security-Policy forbids its own style element, and code in attributes. */
const HTMX = JSON.stringify({ includeIndicatorStyles: false, allowEval: false, historyCacheSize: 0 });

export interface Crumb {
  readonly path: string;
  readonly name: string;
}

interface LayoutProps {
  readonly context: Context;
  readonly title: string;
  /** Breadcrumbs from the navigation down to the parent of this page. */
  readonly crumbs?: readonly Crumb[];
  readonly actions?: Html | false | undefined;
  readonly children: Children;
}

export function Layout({ context, title, crumbs = [], actions, children }: LayoutProps): Html {
  const { session, organization } = context;
  return (
    <Document visit={context} title={`${title} · ${organization.name}`}>
      <Header visit={context} session={session} />
      <Navigation visit={context} />
      <main id="main" tabindex="-1">
        {crumbs.length > 0 && <Crumbs crumbs={crumbs} />}
        <div class="title">
          <h1 safe>{title}</h1>
          {actions !== undefined && actions !== false && <div class="actions">{actions}</div>}
        </div>
        <Suspended organization={organization} />
        {session.flash !== null && (
          <p class="flash" role="status" safe>
            {session.flash}
          </p>
        )}
        {children}
        <Footer context={context} />
      </main>
    </Document>
  );
}

function Suspended({ organization }: { organization: OrganizationOfUser }): Html {
  const { suspended_at: since, suspended_reason: reason } = organization;
  if (since === null) return <></>;
  return (
    <p class="notice bad" role="status">
      The operator of this service suspended this organization on <Time at={since} />
      {reason !== null && (
        <>
          : <strong safe>{reason}</strong>
        </>
      )}
      . Nothing is sent, and new messages are refused. Accepted messages wait until the organization is resumed.
    </p>
  );
}

/** A page without navigation. */
export function PlainLayout({ visit, title, children }: { visit: Visit; title: string; children: Children }): Html {
  return (
    <Document visit={visit} title={`${title} · Sendwright`}>
      <main id="main" class="plain" tabindex="-1">
        <p class="brand">
          <Brand visit={visit} />
        </p>
        <h1 safe>{title}</h1>
        {children}
      </main>
    </Document>
  );
}

export function BackToSignIn(): Html {
  return (
    <p>
      <a href="/dashboard/sign-in">Back to sign-in</a>
    </p>
  );
}

interface DocumentProps {
  readonly visit: Visit;
  readonly title: string;
  readonly children: Children;
}

function Document({ visit, title, children }: DocumentProps): Html {
  const { asset, session } = visit;
  const organization = session?.organization?.id;
  return (
    <html lang="en" data-time-zone={visit.session?.timeZone ?? undefined}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <meta name="color-scheme" content="light dark" />
        <meta name="htmx-config" content={HTMX} />
        <title safe>{title}</title>
        <link rel="icon" type="image/svg+xml" href={asset('mark.svg')} />
        <link rel="stylesheet" href={asset('theme.css')} />
        <link rel="stylesheet" href={asset('dashboard.css')} />
        <link rel="stylesheet" href={asset('navigation.css')} />
        <link rel="stylesheet" href={asset('components.css')} />
        <link rel="stylesheet" href={asset('tables.css')} />
        <link rel="stylesheet" href={asset('cards.css')} />
        <link rel="stylesheet" href={asset('messages.css')} />
        <script src={asset('htmx.js')} defer />
        <script src={asset('dashboard.js')} defer />
        <script src={asset('keyboard.js')} defer />
      </head>
      {/* htmx sends this header with every refresh of a part. */}
      <body hx-headers={organization && JSON.stringify({ 'X-Organization': organization })}>
        <a class="skip" href="#main">
          Skip to content
        </a>
        {children}
      </body>
    </html>
  );
}

function Brand({ visit }: { visit: Visit }): Html {
  return (
    <>
      <img src={visit.asset('mark.svg')} alt="" width="24" height="24" />
      <span>Sendwright</span>
    </>
  );
}

export function Header({ visit, session }: { visit: Visit; session: SignedIn }): Html {
  const { organization, organizations, user } = session;
  const others = organizations.filter(({ id }) => id !== organization?.id);
  return (
    <header>
      {organization !== null && <NavigationButton />}
      <a class="brand" href="/dashboard">
        <Brand visit={visit} />
      </a>
      {organization !== null && others.length === 0 && (
        <span class="organization" title={escapeHtml(organization.name)} safe>
          {organization.name}
        </span>
      )}
      {organization !== null && others.length > 0 && (
        <details class="menu organization">
          <summary>
            <span class="hidden">Organization: </span>
            <span safe>{organization.name}</span>
          </summary>
          <div>
            {others.map(({ id, name }) => (
              <Form visit={visit} action="/dashboard/organization">
                <input type="hidden" name="organization" value={id} />
                <button class="entry" safe>
                  {name}
                </button>
              </Form>
            ))}
          </div>
        </details>
      )}
      {organization !== null && <SearchBox />}
      <details class="menu account">
        <summary>
          <span class="hidden">Account: </span>
          <span safe>{user.name || user.email}</span>
        </summary>
        <div>
          {organization !== null && (
            <a class="entry" href="/dashboard/account">
              Your account
            </a>
          )}
          <Form visit={visit} action="/dashboard/sign-out">
            <button class="entry">Sign out</button>
          </Form>
        </div>
      </details>
    </header>
  );
}

/** The search for emails on every page. The keyboard script focuses the field with `data-search`. */
function SearchBox(): Html {
  return (
    <form method="get" action="/dashboard/emails" class="search" role="search" aria-label="Search">
      <input
        type="search"
        id="search"
        name="q"
        aria-label="Search"
        placeholder="Address, @domain, subject or id"
        autocomplete="off"
        accesskey="/"
        data-search=""
      />
    </form>
  );
}

function Crumbs({ crumbs }: { crumbs: readonly Crumb[] }): Html {
  return (
    <nav class="crumbs" aria-label="Breadcrumb">
      <ol>
        {crumbs.map(({ path, name }) => (
          <li>
            <a href={path} safe>
              {name}
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}
