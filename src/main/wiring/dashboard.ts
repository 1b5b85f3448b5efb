import type { FastifyInstance } from 'fastify';
import { dashboard } from '../../dashboard/app.ts';
import type { DashboardDeps } from '../../dashboard/page.ts';
import { makePublic } from '../../http/plugins/auth.ts';

/** Serves the dashboard beside the API. It authenticates users by sessions, not by API keys. */
export async function serveDashboard(app: FastifyInstance, deps: DashboardDeps): Promise<void> {
  await app.register(async (pages) => {
    makePublic(pages);
    await pages.register(dashboard(deps), { prefix: '/dashboard' });
  });
}
