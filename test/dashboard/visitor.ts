import assert from 'node:assert/strict';
import { request } from 'undici';
import { newId } from '../../src/domain/ids.ts';
import { hashPassword } from '../../src/accounts/passwords.ts';
import { beginSession } from '../../src/accounts/sign-in.ts';
import { insertMembership, insertUser, type Role } from '../../src/store/accounts/users.ts';
import type { Service } from '../http/service.ts';

/** A page as a browser gets it. */
export interface Shown {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Its HTML. */
  readonly html: string;
  /** Where it leads on to, without our origin. */
  readonly location: string | undefined;
}

/** Several values of one name are boxes that are ticked. */
export type Fields = Readonly<Record<string, string | readonly string[]>>;

/** A browser without scripts: keeps cookies, and names its origin as browsers do. */
export interface Visitor {
  readonly get: (path: string, headers?: Record<string, string>) => Promise<Shown>;
  readonly post: (path: string, fields?: Fields, headers?: Record<string, string>) => Promise<Shown>;
  /** Posts, expects to be led on, and goes there. */
  readonly change: (path: string, fields?: Fields) => Promise<Shown>;
  /** The cookie of the session, as it would be sent; empty without a session. */
  readonly cookie: () => string;
  /** The cookie of a known browser. */
  readonly browserCookie: () => string;
  /** Takes somebody's cookies. */
  readonly take: (cookie: string) => void;
  readonly signIn: (email: string, password: string) => Promise<void>;
}

export const PASSWORD = 'correct horse battery';

export function visitor({ url }: Pick<Service, 'url'>): Visitor {
  const cookies = new Map<string, string>();
  const cookie = (which: RegExp) =>
    [...cookies]
      .filter(([name]) => which.test(name))
      .map(([name, value]) => `${name}=${value}`)
      .join('; ');
  const send = async (method: 'GET' | 'POST', path: string, headers: Record<string, string>, body?: string) => {
    const response = await request(new URL(path, url), {
      method,
      headers: { ...(cookies.size > 0 && { cookie: cookie(/./) }), ...headers },
      ...(body !== undefined && { body }),
    });
    const html = await response.body.text();
    for (const line of [response.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/Max-Age=0/.test(line)) cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = response.headers['location'] as string | undefined;
    assert.match(String(response.headers['x-request-id']), /^req_/);
    return { status: response.statusCode, headers: response.headers, html, location };
  };
  const get: Visitor['get'] = (path, headers = {}) => send('GET', path, headers);
  const post: Visitor['post'] = (path, fields = {}, headers = {}) => {
    const form = { 'content-type': 'application/x-www-form-urlencoded', origin: url, 'sec-fetch-site': 'same-origin' };
    return send('POST', path, { ...form, ...headers }, bodyOf(fields));
  };
  return {
    get,
    post,
    async change(path, fields) {
      const { status, location, html } = await post(path, fields);
      assert.equal(status, 303, `${path}: ${textOf(html)}`);
      return get(location ?? '');
    },
    cookie: () => cookie(/sendwright$/),
    browserCookie: () => cookie(/-browser$/),
    take(text) {
      cookies.clear();
      for (const pair of text.split('; ')) cookies.set(...(pair.split('=', 2) as [string, string]));
    },
    async signIn(email, password) {
      const { status, html } = await post('/dashboard/sign-in', { email, password });
      assert.equal(status, 303, textOf(html));
    },
  };
}

function bodyOf(fields: Fields): string {
  const pairs = Object.entries(fields).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  return new URLSearchParams(pairs as [string, string][]).toString();
}

let count = 0;
let passwordHash: Promise<string> | undefined;

/** Somebody with an account, at his browser. */
export interface Person extends Visitor {
  readonly id: string;
  readonly email: string;
}

/** A user of an organization with this role, signed in. */
export async function signedIn(
  service: Pick<Service, 'url' | 'pool'>,
  orgId: string,
  role: Role = 'owner',
): Promise<Person> {
  const email = `person${++count}@example.com`;
  const id = newId('usr', Date.now());
  // Hashing takes most of the time of a test: once for all of them is enough.
  passwordHash ??= hashPassword(PASSWORD);
  await insertUser(service.pool, { id, email, name: '', password: await passwordHash }, true);
  await insertMembership(service.pool, orgId, id, role);
  const made = visitor(service);
  made.take(`sendwright=${await beginSession(service.pool, id)}`);
  return { ...made, id, email };
}

/** What people read of a page. */
export function textOf(html: string): string {
  const text = html
    .replace(/<head>.*<\/head>/s, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
  const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#34': '"' };
  return text.replace(/&(amp|lt|gt|quot|#39|#34);/g, (_, name: string) => named[name] ?? '').trim();
}
