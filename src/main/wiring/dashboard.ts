import type { FastifyInstance } from 'fastify';
import { dashboard } from '../../dashboard/app.ts';
import { loadAssets } from '../../dashboard/assets.ts';
import type { DashboardDeps } from '../../dashboard/page.ts';
import { makePublic } from '../../http/plugins/auth.ts';

/** Serves the dashboard beside the API. Users authenticate with sessions, not with API keys. */
export async function serveDashboard(app: FastifyInstance, deps: DashboardDeps): Promise<void> {
  const assets = loadAssets();
  await app.register(async (pages) => {
    makePublic(pages);
    // Browsers request it for pages without a link to an icon, such as responses of the API.
    pages.get('/favicon.ico', { schema: { hide: true } }, async (_request, reply) => {
      return reply.redirect(assets.get('mark.svg')?.path ?? '/dashboard', 303);
    });
    await pages.register(dashboard(deps, assets), { prefix: '/dashboard' });
  });
}
