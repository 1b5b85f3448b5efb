import { accept } from './accept.ts';
import { backlog } from './backlog.ts';
import { batch } from './batch.ts';
import { capacity } from './capacity.ts';
import { drain } from './drain.ts';
import { due } from './due.ts';
import { floor } from './floor.ts';
import { lists } from './lists.ts';
import { memory } from './memory.ts';
import { messages } from './messages.ts';
import { otp } from './otp.ts';
import { pages } from './pages.ts';
import { retention } from './retention.ts';
import { scale } from './scale.ts';
import { storage } from './storage.ts';
import { sustained } from './sustained.ts';
import { tenantsLine } from './tenants-line.ts';
import { tenants } from './tenants.ts';
import { webhooks } from './webhooks.ts';

/** The measurements of `npm run bench`, in the order they run. */
const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  accept,
  batch,
  drain,
  sustained,
  scale,
  capacity,
  floor,
  otp,
  backlog,
  messages,
  due,
  webhooks,
  'tenants-line': tenantsLine,
  memory,
  storage,
  lists,
  retention,
  pages,
  tenants,
};

const names = process.argv.slice(2);
const unknown = names.find((name) => !(name in BENCHES));
if (unknown !== undefined) {
  console.error(`There is no measurement ${unknown}; there are ${Object.keys(BENCHES).join(', ')}.`);
  process.exit(1);
}
for (const [name, bench] of Object.entries(BENCHES)) {
  if (names.length === 0 || names.includes(name)) await bench();
}
