import { hash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { contentType } from 'mime-types';
import { ServiceError } from '../domain/errors.ts';
import { daysSinceExamples, EXAMPLE_URL, makeCurrent } from '../http/docs/current-examples.ts';
import { makePublic } from '../http/plugins/auth.ts';
import { acceptsGzip, acceptsHtml } from '../lib/negotiation.ts';
import { renderResults } from './results.tsx';
import { makeSearch } from './search.ts';
import { fileOf, loadSite, type Site } from './site.ts';

/** Pages load only our own files, contain no inline style or script, and cannot be framed. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');
const IMMUTABLE = /^\/docs\/assets\//;
const TEXT = /^(?:text\/|application\/json|image\/svg)|javascript/;

interface SiteDeps {
  readonly publicUrl: string | undefined;
  /** Sender domain in examples; undefined means `example.com`. */
  readonly docsSenderDomain: string | undefined;
}

/** A response that is cached in memory. */
interface Prepared {
  readonly type: string;
  readonly etag: string;
  readonly body: Buffer;
  readonly gzipped: Buffer | undefined;
}

/** Serves the documentation at /docs and /llms.txt. The first request loads the site, or renders all of it. */
export async function serveSite(app: FastifyInstance, deps: SiteDeps): Promise<void> {
  let loading: Promise<Site> | undefined;
  const load = async () => {
    loading ??= loadSite(() => app.swagger());
    loading.catch(() => (loading = undefined));
    return loading;
  };
  const prepare = makePreparer(load, deps);
  const search = makeSearcher(load);
  await app.register(async (pages) => {
    makePublic(pages);
    pages.addHook('onSend', setSecurityHeaders);
    const schema = { hide: true };
    pages.get('/docs/search', { schema, config: { networkLimit: 'requests' } }, async (request, reply) => {
      const { q } = request.query as { q?: string | string[] };
      const query = [q ?? ''].flat()[0] ?? '';
      const { body } = await prepare('/docs/search');
      const results = query.trim() === '' ? [] : await search(query);
      const page = body.toString().replace('<!--results-->', () => renderResults(query, results));
      return reply.headers({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }).send(page);
    });
    for (const url of ['/docs', '/docs/*', '/llms.txt']) {
      pages.get(url, { schema }, async (request, reply) => {
        const [path = ''] = request.url.split('?');
        if (!(await load()).paths.has(path)) return sendNotFound(request, reply, prepare);
        return sendPrepared(request, reply, path, await prepare(path));
      });
    }
  });
}

/**
 * Prepares each file once, compressed. Pages are prepared again each day, because the times in their examples are relative to
 * today.
 */
function makePreparer(load: () => Promise<Site>, { publicUrl, docsSenderDomain }: SiteDeps) {
  const prepared = new Map<string, Prepared>();
  let days = daysSinceExamples();
  return async (path: string): Promise<Prepared> => {
    const today = daysSinceExamples();
    if (today !== days) prepared.clear();
    days = today;
    const cached = prepared.get(path);
    if (cached) return cached;
    const type = contentType(fileOf(path).split('/').at(-1) ?? '') || 'application/octet-stream';
    let body = await (await load()).read(path);
    if (TEXT.test(type) && !IMMUTABLE.test(path)) {
      let text = makeCurrent(body.toString(), today, docsSenderDomain);
      if (publicUrl !== undefined) text = text.replaceAll(EXAMPLE_URL, () => publicUrl);
      body = Buffer.from(text);
    }
    const etag = `"${hash('sha256', body).slice(0, 32)}"`;
    const response = { type, etag, body, gzipped: TEXT.test(type) ? gzipSync(body, { level: 9 }) : undefined };
    prepared.set(path, response);
    return response;
  };
}

function makeSearcher(load: () => Promise<Site>) {
  let search: ReturnType<typeof makeSearch> | undefined;
  return async (query: string) => {
    const { paths, read } = await load();
    const index = [...paths].find((path) => path.endsWith('/search.json'));
    search ??= makeSearch(String(await read(index ?? '')));
    return search(query);
  };
}

async function sendPrepared(request: FastifyRequest, reply: FastifyReply, path: string, prepared: Prepared) {
  const { type, etag, body, gzipped } = prepared;
  reply.headers({
    'content-type': type,
    'cache-control': IMMUTABLE.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag,
    vary: 'accept-encoding',
  });
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  if (!gzipped || !acceptsGzip(request)) return reply.send(body);
  return reply.header('content-encoding', 'gzip').send(gzipped);
}

/** Returns a page to browsers, and the API's error to programs. */
async function sendNotFound(
  request: FastifyRequest,
  reply: FastifyReply,
  prepare: (path: string) => Promise<Prepared>,
): Promise<FastifyReply> {
  if (!acceptsHtml(request)) throw new ServiceError('not_found', 'there is nothing at this address');
  const { body, type } = await prepare('/docs/not-found');
  return reply.code(404).headers({ 'content-type': type, 'cache-control': 'no-store' }).send(body);
}

async function setSecurityHeaders(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.headers({
    'content-security-policy': POLICY,
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  });
}
