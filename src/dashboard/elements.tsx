import type { Children } from '@kitajs/html';
import { escapeHtml } from '../lib/html.ts';
import type { Cursor } from '../store/postgres/page.ts';
import { queryOf, valueOf } from './forms.ts';
import { type Html, pathOf, type Visit } from './page.ts';
import { cursorToText } from './cursors.ts';

/** States by their color. The name of a state is always shown too. Other states are `ended`. */
const TONES: Readonly<Record<string, readonly string[]>> = {
  waiting: ['queued', 'scheduled', 'pending'],
  moving: ['sent', 'processing'],
  good: ['delivered', 'opened', 'clicked', 'read', 'verified', 'enabled', 'succeeded', 'completed', 'active'],
  warning: ['delivery_delayed', 'expired', 'failing'],
  bad: ['bounced', 'complained', 'rejected', 'failed', 'undelivered', 'disabled'],
};

export function toneOf(status: string): string {
  return Object.keys(TONES).find((tone) => TONES[tone]?.includes(status)) ?? 'ended';
}

/** Formats a name of the API, such as a status or a reason, as words. */
export function inWords(name: string): string {
  return name.replaceAll('_', ' ');
}

export function StatusBadge({ status }: { status: string }): Html {
  return (
    <span class={['badge', toneOf(status)]} safe>
      {inWords(status)}
    </span>
  );
}

interface TimeProps {
  /** In the API's format. */
  readonly at: string | null;
  /** Without seconds, and without the date for today. */
  readonly short?: boolean | undefined;
  /** As the time that has passed or remains. */
  readonly relative?: boolean | undefined;
}

/** A script converts the time to the reader's time zone. The title of a short or relative time is the exact time. */
export function Time({ at, short = false, relative = false }: TimeProps): Html {
  if (at === null) return <span class="muted">–</span>;
  return (
    <time datetime={at} data-short={short ? '' : undefined} data-relative={relative ? '' : undefined} safe>
      {`${at.slice(0, 10)} ${at.slice(11, short ? 16 : 19)} UTC`}
    </time>
  );
}

/** An id with a copy button, on one line. */
export function Id({ id }: { id: string }): Html {
  return <Copy value={id} isLine />;
}

interface CopyProps {
  readonly value: string;
  readonly label?: string;
  /** Truncates a value that is too long for one line. */
  readonly isLine?: boolean;
}

/** A value with a copy button, which a script shows. */
export function Copy({ value, label = 'Copy', isLine = false }: CopyProps): Html {
  return (
    <span class={['copy', isLine && 'line']}>
      <code safe>{value}</code>
      <button type="button" class="small" data-copy="" hidden safe>
        {label}
      </button>
    </span>
  );
}

export function Command({ text }: { text: string }): Html {
  return (
    <div class="copy command">
      <pre tabindex="0">
        <code safe>{text}</code>
      </pre>
      <button type="button" class="small" data-copy="" hidden>
        Copy
      </button>
    </div>
  );
}

/**
 * Returns a curl command: a POST of `json`, or a GET without it.
 * @param apiKey the shell variable SENDWRIGHT_API_KEY by default
 */
export function curl(visit: Visit, path: string, json?: unknown, apiKey?: string): string {
  const parts = [
    `curl ${quoted(visit.baseUrl + path)}`,
    apiKey === undefined
      ? `-H "Authorization: Bearer $SENDWRIGHT_API_KEY"`
      : `-H ${quoted(`Authorization: Bearer ${apiKey}`)}`,
    ...(json === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(json))}`]),
  ];
  return parts.join(' \\\n  ');
}

function quoted(text: string): string {
  return /^[\w:/.-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** @param command a request that adds the first entry */
export function Empty({ title, command, children }: { title: string; command?: string; children?: Children }): Html {
  return (
    <section class="empty">
      <h2 safe>{title}</h2>
      {children}
      {command !== undefined && (
        <>
          <p>
            In a terminal, with one of your API keys in <code>SENDWRIGHT_API_KEY</code>:
          </p>
          <Command text={command} />
        </>
      )}
    </section>
  );
}

/** Maximum number of earlier positions in a link, which keeps its query short. */
const MAX_TRAIL = 20;
/** The position of the first page in a trail. */
const FIRST_PAGE = '0';

/**
 * Links to the next, previous and first page. The query parameter `before` contains the positions of the previous pages. Far
 * behind the first page, the earliest positions are dropped; the page from which none is left has no link to the previous one.
 * @param next the end of this page, or null
 */
export function Pager({ visit, next }: { visit: Visit; next: Cursor | null }): Html {
  const cursor = valueOf(visit.input, 'cursor');
  if (cursor === undefined && next === null) return '';
  const trail = (valueOf(visit.input, 'before') ?? '').split('.').filter((position) => position !== '');
  const isFirst = cursor === undefined || cursor === '';
  const previous = trail.at(-1);
  return (
    <nav class="pager" aria-label="Pages">
      {!isFirst && (
        <>
          <a href={withCursor(visit, null)}>First page</a>
          {previous !== undefined && (
            <a href={withCursor(visit, previous === FIRST_PAGE ? null : previous, trail.slice(0, -1))} rel="prev">
              Newer
            </a>
          )}
        </>
      )}
      {next !== null && (
        <a
          href={withCursor(visit, cursorToText(next), [...trail, isFirst ? FIRST_PAGE : cursor].slice(-MAX_TRAIL))}
          rel="next"
        >
          Older
        </a>
      )}
    </nav>
  );
}

/** Returns the link to a page. @param trail positions of earlier pages */
function withCursor(visit: Visit, cursor: string | null, trail: readonly string[] = []): string {
  return pathOf(visit) + queryOf({ ...visit.input, cursor: cursor ?? '', before: trail.join('.') });
}

/** The heading of a column; `number` marks a column of numbers. */
export type Column = string | readonly [name: string, kind: 'number'];

interface TableProps {
  /** For screen readers. */
  readonly caption: string;
  readonly columns: readonly Column[];
  /**
   * `cards` shows rows as cards in a narrow window. The others have one-line rows in columns of a fixed width, which tables.css defines
   * for this class; the link of a row covers all of it.
   */
  readonly layout?: 'cards' | 'emails' | 'audit' | 'deliveries' | 'requests' | 'records' | undefined;
  /** `<tr>` elements. */
  readonly children: Children;
}

/** A table that scrolls horizontally on narrow screens. */
export function Table({ caption, columns, layout, children }: TableProps): Html {
  return (
    <div
      class={['table', layout !== undefined && layout !== 'cards' && 'lines', layout]}
      role="region"
      aria-label={caption}
      tabindex="0"
    >
      <table>
        <caption class="hidden" safe>
          {caption}
        </caption>
        <thead>
          <tr>
            {columns.map((column) => {
              const [name, kind] = typeof column === 'string' ? [column, undefined] : column;
              return (
                <th scope="col" class={kind}>
                  {name === '' ? <span class="hidden">Actions</span> : <span safe>{name}</span>}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function TimeCell(time: TimeProps): Html {
  return (
    <td>
      <Time {...time} />
    </td>
  );
}

export function StatusCell({ status }: { status: string }): Html {
  return (
    <td>
      <StatusBadge status={status} />
    </td>
  );
}

export function NumberCell({ text }: { text: string }): Html {
  return (
    <td class="number" safe>
      {text}
    </td>
  );
}

interface LinkHeadingProps {
  readonly href: string;
  readonly text: string;
  readonly sub?: string | null;
  /** The tooltip of the whole row in tables with one-line rows. */
  readonly title?: string;
  /** Set in lists that refresh themselves, so that htmx preserves the focus. */
  readonly id?: string;
}

/** The cell that names a row, with a link to it. */
export function LinkHeading({ href, text, sub = null, title, id }: LinkHeadingProps): Html {
  return (
    <th scope="row">
      <a href={href} id={id} title={title && escapeHtml(title)} safe>
        {text}
      </a>
      {sub !== null && <Sub text={sub} />}
    </th>
  );
}

/** A second line in a small font. */
export function Sub({ text }: { text: string }): Html {
  return (
    <span class="sub" safe>
      {text}
    </span>
  );
}

export function Section({ title, id, children }: { title: string; id?: string; children: Children }): Html {
  return (
    <section id={id}>
      <h2 safe>{title}</h2>
      {children}
    </section>
  );
}

/** A name with its value, which may span a whole line; `false` omits the row. */
export type Fact = readonly [name: string, value: Html, width?: 'whole'] | false;

export function Facts({ facts }: { facts: readonly Fact[] }): Html {
  return (
    <dl class="facts">
      {facts
        .filter((fact) => fact !== false)
        .map(([name, value, width]) => (
          <div class={width}>
            <dt safe>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Escaped text. */
export function Text({ text }: { text: string }): Html {
  return <span safe>{text}</span>;
}
