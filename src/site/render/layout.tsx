import type { Children } from '@kitajs/html';
import { NAVIGATION } from '../navigation.ts';
import type { Heading } from './markdown.ts';

/** The result of JSX: text, never a promise. */
export type Html = JSX.Element;

interface NavigationLink {
  readonly path: string;
  readonly title: string;
}
interface NavigationGroup {
  readonly title: string;
  readonly links: readonly NavigationLink[];
}

/** Data that all pages share. */
export interface Frame {
  readonly groups: readonly NavigationGroup[];
  /** @returns the path of an asset */
  readonly asset: (name: string) => string;
}

interface PageProps {
  readonly frame: Frame;
  readonly path: string;
  readonly title: string;
  readonly description: string;
  /** Headings for the table of contents. */
  readonly headings?: readonly Heading[];
  /** The path of the same page as Markdown. */
  readonly source?: string;
  readonly children: Children;
}

/** The minimum number of headings for a table of contents. */
const MIN_CONTENTS = 3;

export function Page({ frame, path, title, description, headings = [], source, children }: PageProps): Html {
  const contents = headings.filter(({ level }) => level === 2 || level === 3);
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="description" content={description} />
        <title safe>{path === '/docs' ? 'Sendwright documentation' : `${title} · Sendwright documentation`}</title>
        <link rel="icon" type="image/svg+xml" href={frame.asset('mark.svg')} />
        {source !== undefined && <link rel="alternate" type="text/markdown" href={source} />}
        <link rel="stylesheet" href={frame.asset('theme.css')} />
        <link rel="stylesheet" href={frame.asset('docs.css')} />
        <link rel="stylesheet" href={frame.asset('article.css')} />
        <script src={frame.asset('docs.js')} type="module" />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <Header frame={frame} />
        <Navigation frame={frame} path={path} />
        <main id="main" tabindex="-1">
          {contents.length >= MIN_CONTENTS && <Contents headings={contents} />}
          <article>{children}</article>
          <Neighbors frame={frame} path={path} />
          {source !== undefined && (
            <p class="source">
              <a href={source}>This page as Markdown</a>
            </p>
          )}
        </main>
      </body>
    </html>
  );
}

function Header({ frame }: { frame: Frame }): Html {
  return (
    <header>
      <a class="menu" href="#navigation">
        Menu
      </a>
      <a class="brand" href="/docs">
        <img src={frame.asset('mark.svg')} alt="" width="24" height="24" />
        <span>Sendwright docs</span>
      </a>
      <form
        action="/docs/search"
        role="search"
        data-index={frame.asset('search.json')}
        data-library={frame.asset('minisearch.js')}
      >
        <input
          type="search"
          name="q"
          placeholder="Search"
          aria-label="Search the documentation"
          autocomplete="off"
          required
        />
        <div class="results" role="region" aria-label="Search results" aria-live="polite" hidden></div>
      </form>
      <a class="dashboard" href="/dashboard">
        Dashboard
      </a>
    </header>
  );
}

function Navigation({ frame, path }: { frame: Frame; path: string }): Html {
  return (
    <nav id="navigation" class="pages" aria-label="Documentation">
      <a class="close" href="#main">
        Close the menu
      </a>
      {frame.groups.map(({ title, links }) => (
        <div>
          <h2 safe>{title}</h2>
          <ul>
            {links.map((link) => (
              <li>
                <a href={link.path} aria-current={link.path === path ? 'page' : undefined} safe>
                  {link.title}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function Contents({ headings }: { headings: readonly Heading[] }): Html {
  return (
    <nav class="contents" aria-label="On this page">
      <h2>On this page</h2>
      <ul>
        {headings.map(({ level, anchor, text }) => (
          <li class={`level-${level}`}>
            <a href={`#${anchor}`} safe>
              {text}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Links to the previous and the next page in the order of the navigation. */
function Neighbors({ frame, path }: { frame: Frame; path: string }): Html {
  const links = frame.groups.flatMap((group) => group.links);
  const index = links.findIndex((link) => link.path === path);
  const previous = links[index - 1];
  const next = index === -1 ? undefined : links[index + 1];
  if (!previous && !next) return <></>;
  return (
    <nav class="neighbors" aria-label="Previous and next page">
      {previous !== undefined && (
        <a rel="prev" href={previous.path}>
          <small>Previous</small>
          <span safe>{previous.title}</span>
        </a>
      )}
      {next !== undefined && (
        <a rel="next" href={next.path}>
          <small>Next</small>
          <span safe>{next.title}</span>
        </a>
      )}
    </nav>
  );
}

/** The index page: every page with its description. */
export function Index({ titles }: { titles: ReadonlyMap<string, string> }): Html {
  return (
    <>
      <h1>Sendwright documentation</h1>
      <p class="lead">
        Send email, SMS and WhatsApp messages by one HTTP call, now or up to 30 days later, and follow each of them.
      </p>
      {NAVIGATION.map((group) => (
        <section>
          <h2 safe>{group.title}</h2>
          <ul class="index">
            {group.pages.map(({ name, description }) => (
              <li>
                <a href={`/docs/${name}`} safe>
                  {titles.get(name) ?? name}
                </a>
                <span safe>{description}</span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p>
        For programs: <a href="/openapi.json">the API description</a>, <a href="/llms.txt">the list of all pages</a>,
        and each page as Markdown.
      </p>
    </>
  );
}
