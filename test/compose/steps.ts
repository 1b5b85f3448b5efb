import assert from 'node:assert/strict';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  allHealthy,
  compose,
  containers,
  ONCE,
  printMemory,
  run,
  SCRAPED,
  shell,
  type Environment,
  timed,
  until,
} from './docker.ts';
import { documented } from './documented.ts';
import { crash, type Customer, email, inSeconds, setUp } from './mail.ts';

export interface Installation extends Environment {
  readonly baseUrl: string;
  readonly inboxUrl: string;
  readonly isOwnEngine: boolean;
}

export async function firstStart(at: Installation): Promise<Customer> {
  await shell(at, 'sh deploy/secrets.sh secrets');
  await timed(at, 'docker compose up --build --detach, without the image', () =>
    compose(at, 'up', '--build', '--detach'),
  );
  await timed(at, 'all healthy after that', () => allHealthy(at));
  const customer = await setUp(at, at.baseUrl, at.inboxUrl);
  await timed(at, 'first email delivered', async () => {
    await customer.waitFor(`/v1/emails/${await customer.send('first@example.net')}`, 'delivered');
  });
  await timed(at, 'first chat-app message delivered', async () => {
    await customer.waitFor(await customer.sendChat(), 'delivered');
  });
  const scheduled = await customer.send('canceled@example.net', { scheduled_at: inSeconds(3_600) });
  const canceled = await customer.post(`/v1/emails/${scheduled}/cancel`, {});
  assert.equal(canceled.status, 200);
  await customer.waitFor(`/v1/emails/${scheduled}`, 'canceled');
  at.print('a scheduled email was canceled');
  return customer;
}

export async function nothingToDo(at: Installation): Promise<void> {
  const ids = async () => (await containers(at)).filter(({ Service }) => !ONCE.includes(Service)).map(({ ID }) => ID);
  const before = await ids();
  await timed(at, 'docker compose up --detach again', () => compose(at, 'up', '--detach'));
  assert.deepEqual((await ids()).sort(), before.sort(), 'no container is replaced');
  const nameless = await run(at, 'docker', ['image', 'ls', '--filter', 'dangling=true', '--quiet']);
  at.print(`images without a name: ${nameless.split('\n').filter((line) => line !== '').length}`);
}

/** Ends every container of a service as a crash would, and waits until messages are delivered again. */
export async function crashEach(at: Installation, customer: Customer): Promise<void> {
  const services = new Set((await containers(at)).map(({ Service }) => Service).filter((name) => !ONCE.includes(name)));
  for (const service of services) {
    const pending = await customer.send(`before-${service}@example.net`);
    // The simulated provider loses pending reports in a crash.
    if (service === 'simulator') await customer.waitFor(`/v1/emails/${pending}`, 'delivered');
    const ended = await containers(at, service);
    const began = Date.now();
    await Promise.all(ended.map(({ ID }) => crash(at, ID, at.isOwnEngine)));
    const after = await customer.send(`after-${service}@example.net`);
    const accepted = Date.now();
    await customer.waitFor(`/v1/emails/${pending}`, 'delivered');
    await customer.waitFor(`/v1/emails/${after}`, 'delivered');
    await customer.waitFor(await customer.sendChat(), 'delivered');
    const delivered = Date.now();
    await allHealthy(at);
    const [a, d, h] = [accepted, delivered, Date.now()].map((time) => ((time - began) / 1_000).toFixed(1));
    at.print(
      `SIGKILL of ${service} (${ended.length}): accepts after ${a} s, delivered after ${d} s, healthy after ${h} s`,
    );
  }
}

export async function scale(at: Installation, customer: Customer): Promise<void> {
  await timed(at, 'worker-email scaled to 3', async () => {
    await compose(at, 'up', '--detach', '--no-recreate', '--wait', '--scale', 'worker-email=3', 'worker-email');
  });
  assert.equal((await containers(at, 'worker-email')).filter(({ Health }) => Health === 'healthy').length, 3);
  const emails = Array.from({ length: 1_000 }, (_, index) => email(`scaled-${index}@example.net`));
  await timed(at, 'batch of 1,000 completed', async () => {
    const { status, body } = await customer.post('/v1/emails/batch', { emails });
    assert.equal(status, 202, JSON.stringify(body));
    await customer.waitFor(`/v1/emails/batch/${body.id}`, 'completed');
    const last = emails.at(-1)?.to ?? '';
    assert.equal(await customer.received(last), 1);
  });
  await compose(at, 'up', '--detach', '--no-recreate', '--scale', 'worker-email=2', 'worker-email');
}

/** The upgrade of docs/maintenance.md to another image, with requests and open timers. */
export async function upgrade(at: Installation, customer: Customer, version: string): Promise<void> {
  const due = Date.now() + 60_000;
  const timers = Array.from({ length: 20 }, (_, index) => `timer-${index}@example.net`);
  const late = await customer.send('late@example.net', { scheduled_at: inSeconds(1_200) });
  for (const [index, to] of timers.entries()) {
    await customer.send(to, { scheduled_at: new Date(due + index * 15_000).toISOString() });
  }
  const statuses = new Map<string, number>();
  const over = new AbortController();
  const load = (async () => {
    for (let index = 0; !over.signal.aborted; index++) {
      const status = await customer.post('/v1/emails', email(`load-${index}@example.net`)).then(
        (answer) => String(answer.status),
        (error: unknown) => (error as Error).message,
      );
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      await sleep(200);
    }
  })();
  // Another program, so that another image is built.
  await appendFile(join(at.folder, 'src', 'main', 'api.ts'), `log.info('${version}');\n`);
  at.env['SENDWRIGHT_VERSION'] = version;
  try {
    await timed(at, 'upgrade as documented, with the build', () => shell(at, documented('Upgrades', at.project)));
  } finally {
    over.abort();
    await load;
  }
  at.print(`answers during the upgrade: ${[...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')}`);
  assert.deepEqual([...statuses.keys()], ['202']);
  const old = (await containers(at)).filter(
    ({ Image, Service }) => Image.startsWith('sendwright:') && !Image.endsWith(version) && !ONCE.includes(Service),
  );
  assert.deepEqual(
    old.map(({ Name }) => Name),
    [],
    'every process has the new version',
  );
  await until('timers of the old version end under the new one', 480_000, async () => {
    const counts = await Promise.all(timers.map((to) => customer.received(to)));
    const missing = counts.filter((count) => count === 0).length;
    return missing === 0 ? undefined : `${missing} are missing`;
  });
  assert.equal(await customer.statusOf(`/v1/emails/${late}`), 'scheduled');
  assert.equal((await customer.post(`/v1/emails/${late}/cancel`, {})).status, 200);
  at.print(`${timers.length} emails that were scheduled before the upgrade were sent after it`);
}

export async function downAndUp(at: Installation, customer: Customer): Promise<void> {
  const id = await customer.send('down@example.net', { scheduled_at: inSeconds(45) });
  await timed(at, 'docker compose down', () => compose(at, 'down'));
  await timed(at, 'docker compose up --detach --wait', () => compose(at, 'up', '--detach', '--wait'));
  await customer.waitFor(`/v1/emails/${id}`, 'delivered');
  at.print('data was kept, and an email scheduled before was sent');
}

/** Backup and restore of docs/maintenance.md, with the volume of attachments lost too. */
export async function backupAndRestore(at: Installation, customer: Customer): Promise<void> {
  const content = Buffer.from('kept by a backup').toString('base64');
  const attachments = [{ filename: 'kept.txt', content }];
  const id = await customer.send('restored@example.net', { scheduled_at: inSeconds(240), attachments });
  await timed(at, 'backup as documented', () => shell(at, documented('Backup', at.project)));
  const lost = await customer.send('lost@example.net');
  await customer.waitFor(`/v1/emails/${lost}`, 'delivered');
  await compose(at, 'down');
  await run(at, 'docker', ['volume', 'rm', `${at.project}_attachments`]);
  await run(at, 'rm', ['-r', 'secrets']);
  await timed(at, 'restore as documented', () => shell(at, documented('Restore', at.project)));
  await allHealthy(at);
  await customer.waitFor(`/v1/emails/${id}`, 'delivered', 480_000);
  assert.equal(await customer.statusOf(`/v1/emails/${lost}`), undefined, 'accepted after the backup');
  at.print('an email with a file, scheduled before the backup, was sent after the restore');
}

/** Asserts that no email arrived twice. */
export async function countInbox(at: Installation, customer: Customer): Promise<void> {
  const counts = new Map<number, number>();
  for (const to of customer.recipients) {
    const count = await customer.received(to);
    counts.set(count, (counts.get(count) ?? 0) + 1);
  }
  at.print(
    `emails of ${customer.recipients.size}: ${[...counts].map(([n, of]) => `${of} arrived ${n} times`).join(', ')}`,
  );
  assert.deepEqual(
    [...counts.keys()].filter((count) => count > 1),
    [],
  );
}

/** @param withGrafana only where its real image is there */
export async function monitoring(at: Installation, withGrafana: boolean, port: string): Promise<void> {
  const services = ['prometheus', ...(withGrafana ? ['grafana'] : [])];
  await timed(at, `profile monitoring (${services.join(', ')})`, () =>
    compose(at, '--profile', 'monitoring', 'up', '--detach', '--no-recreate', '--wait', ...services),
  );
  await until('Prometheus scrapes every replica', 120_000, async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=up`);
    const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
    const up = data.result.filter(({ value }) => value[1] === '1').length;
    return up === SCRAPED ? undefined : `${up} of ${data.result.length} targets are up, expected ${SCRAPED}`;
  });
  await printMemory(at);
}
