import { html, Html } from '../../../src/lib/html.ts';
import type { InboxChat, InboxMessage } from './message.ts';

const STYLE = new Html(`
:root { color-scheme: light dark; --line: light-dark(#dcddd8, #31383d); --soft: light-dark(#585f64, #a3acb3);
  --card: light-dark(#fff, #1a1e21); --back: light-dark(#f6f6f3, #121517); --link: light-dark(#0b6475, #55c0d0); }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); font: 16px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 60rem; margin: 0 auto; padding: 1rem; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding-bottom: 0; }
h1 { font-size: 1.25rem; margin: 0; flex: 1 0 auto; } h1 a { color: inherit; text-decoration: none; }
h2 { font-size: 1.15rem; margin: 0 0 .75rem; overflow-wrap: anywhere; } h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
a { color: var(--link); } form { display: flex; gap: .5rem; flex: 1 1 18rem; }
input, button { font: inherit; padding: .35rem .6rem; border: 1px solid var(--line); border-radius: .4rem; }
input { flex: 1; min-width: 0; background: var(--card); }
p, .soft { color: var(--soft); } p { margin: .5rem 0; }
ol, article { list-style: none; margin: 0; padding: 0; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
article { padding: 1rem; } li + li { border-top: 1px solid var(--line); }
li a { display: grid; grid-template-columns: 1fr auto; gap: 0 1rem; padding: .6rem 1rem; color: inherit; text-decoration: none; }
li a:hover, li a:focus-visible { background: var(--back); }
li span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; } li .subject { font-weight: 600; grid-column: 1; }
li .soft { font-size: .875rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: .9rem/1.5 ui-monospace, monospace; }
iframe { width: 100%; height: 24rem; resize: vertical; border: 1px solid var(--line); border-radius: .4rem; background: #fff; }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
  li a { grid-template-columns: 1fr; } li span { white-space: normal; overflow-wrap: anywhere; } }
`);

/** Fetches the page every two seconds and replaces the list if it has changed. The search field and the scroll position stay. */
const REFRESH = new Html(`
setInterval(async () => {
  if (document.hidden) return;
  const answer = await fetch(location.href).catch(() => undefined);
  if (!answer?.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
  const now = document.querySelector('main');
  if (next.innerHTML !== now.innerHTML) now.replaceChildren(...next.childNodes);
}, 2000);
`);

/**
 * Returns the content security policy of a page. It also applies to an iframe's srcdoc, so inline styles, which emails need,
 * are allowed. Nothing is loaded from other hosts, so tracking images are not requested.
 */
export function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

type Shown = InboxMessage | InboxChat;

function isChat(message: Shown): message is InboxChat {
  return 'type' in message;
}

function titleOf(message: Shown): string {
  if (!isChat(message)) return message.subject || '(no subject)';
  const { type, text, template, media } = message;
  const name = typeof template?.['name'] === 'string' ? template['name'] : '';
  return type === 'text' ? (text ?? '') : `${type}: ${media?.caption ?? media?.filename ?? media?.link ?? name}`;
}

function recipientsOf(message: Shown): string {
  return isChat(message) ? message.to : [...message.to, ...message.cc, ...message.bcc].join(', ');
}

/** A page of the list. */
interface ListPage {
  readonly messages: readonly Shown[];
  /** The recipient of the search; empty for all. */
  readonly to: string;
  /** Counted from 1. */
  readonly number: number;
  readonly hasMore: boolean;
  /** The number of all messages in the inbox. */
  readonly total: number;
}

/** The behavior of magic addresses (`magic.ts`). Outside of `main`, whose content is refreshed. */
const HELP = html`<footer>
  <details>
    <summary>Addresses with an outcome of their own</summary>
    <p>
      Email, at any domain: delivered@, bounced@, bounced+mailbox_full@ (or another bounce reason), complained@,
      opened@, clicked@, delayed@, slow@ (accepted after 20 seconds), fail-once@, fail-always@.
    </p>
    <p>
      Phone numbers that end in 0001 fail, 0002 read (WhatsApp), 0003 fail once, 0004 fail always, 0005 are undelivered
      (SMS), 0006 have opted out (SMS), 0007 have a closed window (WhatsApp).
    </p>
  </details>
</footer>`;

/** The list of messages, latest first. */
export function listPage({ messages, to, number, hasMore, total }: ListPage, nonce: string): string {
  const rows = messages.map(
    (message) =>
      html`<li>
        <a href="/inbox/${encodeURIComponent(message.id)}">
          <span class="subject">${titleOf(message)}</span>
          <time class="soft" datetime="${message.received_at}">${shortTime(message.received_at)}</time>
          <span class="soft">${message.from} → ${recipientsOf(message)}</span>
          <span class="soft">${message.provider}</span>
        </a>
      </li>`,
  );
  const note = to === '' ? `${messages.length} of ${total}, newest first` : `${messages.length} to ${to}, newest first`;
  const pathOf = (page: number): string =>
    `/inbox?${new URLSearchParams({ ...(to !== '' && { to }), page: String(page) }).toString()}`;
  return page(
    'Inbox',
    to,
    html`<p>${messages.length > 0 ? note : to === '' ? 'No messages yet.' : `No messages to ${to} yet.`}</p>
      ${
        rows.length > 0
          ? html`<ol>
              ${rows}
            </ol>`
          : ''
      }
      <p>
        ${number > 1 ? html`<a href="${pathOf(number - 1)}">Newer</a>` : ''}
        ${hasMore ? html`<a href="${pathOf(number + 1)}">Older</a>` : ''}
      </p>`,
    html`${HELP}
      <script nonce="${nonce}">
        ${REFRESH};
      </script>`,
  );
}

/** The page of one message, with all stored details. */
export function messagePage(message: Shown): string {
  return isChat(message) ? chatPage(message) : mailPage(message);
}

function chatPage(chat: InboxChat): string {
  const { media, template } = chat;
  const fields: [string, string][] = [
    ['From', chat.from],
    ['To', chat.to],
    ['Type', chat.type],
    ['File', media?.link ?? ''],
    ['Caption', media?.caption ?? ''],
    ['File name', media?.filename ?? ''],
    ['Received', chat.received_at],
    ['Through', chat.provider],
    ['Id', chat.id],
  ];
  return page(
    titleOf(chat),
    '',
    html`<article>
        <h2>${titleOf(chat)}</h2>
        ${list(fields.filter(([, value]) => value !== ''))}
        ${
          chat.text === null
            ? ''
            : html`<h3>Text</h3>
                <pre>${chat.text}</pre>`
        }
        ${
          template === null
            ? ''
            : html`<h3>Template</h3>
                <pre>${JSON.stringify(template, null, 2)}</pre>`
        }
      </article>
      ${replyForm(chat)}`,
  );
}

function replyForm({ id }: InboxChat): Html {
  return html`<h3>Answer</h3>
    <form method="post" action="/inbox/${encodeURIComponent(id)}/reply">
      <input name="text" aria-label="Text of the answer" placeholder="Yes" />
      <button>Send answer</button>
    </form>`;
}

function mailPage(mail: InboxMessage): string {
  const fields: [string, string][] = [
    ['From', mail.from],
    ['To', mail.to.join(', ')],
    ['Cc', mail.cc.join(', ')],
    ['Bcc', mail.bcc.join(', ')],
    ['Received', mail.received_at],
    ['Through', mail.provider],
    ['Id', mail.id],
  ];
  const files = mail.attachments.map(({ filename, content_type, size, content_id }): [string, string] => [
    filename ?? '(no name)',
    `${content_type}, ${size} bytes${content_id === null ? '' : `, content id ${content_id}`}`,
  ]);
  return page(
    mail.subject || '(no subject)',
    '',
    html`<article>
      <h2>${mail.subject || '(no subject)'}</h2>
      ${list(fields.filter(([, value]) => value !== ''))}
      ${
        mail.html === null
          ? ''
          : html`<h3>HTML</h3>
              <iframe
                title="HTML body"
                sandbox="allow-popups allow-popups-to-escape-sandbox"
                srcdoc="${`<!doctype html><base target="_blank">${mail.html}`}"
              ></iframe>`
      }
      ${
        mail.text === null
          ? ''
          : html`<h3>Text</h3>
              <pre>${mail.text}</pre>`
      }
      ${
        files.length === 0
          ? ''
          : html`<h3>Attachments</h3>
              ${list(files)}`
      }
      <h3>Headers</h3>
      ${list(Object.entries(mail.headers))}
    </article>`,
  );
}

/** The page for an id that is not in the inbox. */
export function missingPage(): string {
  return page(
    'Not found',
    '',
    html`<p>The inbox does not hold this message. <a href="/inbox">Back to the inbox</a></p>`,
  );
}

function list(pairs: readonly (readonly [string, string])[]): Html {
  return html`<dl>
    ${pairs.map(
      ([name, value]) =>
        html`<dt>${name}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`;
}

function shortTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

function page(title: string, to: string, content: Html, script = html``): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>${title} · Sendwright simulator</title>
        <link rel="icon" href="data:," />
        <style>
          ${STYLE}
        </style>
      </head>
      <body>
        <header>
          <h1><a href="/inbox">Simulator inbox</a></h1>
          <form action="/inbox" role="search">
            <input
              type="search"
              name="to"
              value="${to}"
              placeholder="Exact address or number"
              aria-label="Exact address or number"
            />
            <button>Search</button>
          </form>
        </header>
        <main>${content}</main>
        ${script}
      </body>
    </html>`.text;
}
