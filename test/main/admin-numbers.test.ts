import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { organization } from '../store/mail.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { command } from './command-line.ts';

const SECRET_KEY = 'a secret key for tests, and long enough';
const TOKEN = 'EAAG-token';

describe('number add --organization O --number +… --provider twilio|meta [--phone-number-id …] [--token …]', () => {
  let database: TestDatabase;
  let orgId: string;
  before(async () => {
    database = await testDatabase();
    orgId = await organization(database.pool);
  });
  after(() => database.drop());

  function add(args: readonly string[], env: Record<string, string> = { DATABASE_URL: database.url, SECRET_KEY }) {
    return command(['number', 'add', ...args], env);
  }

  /** What is kept of the number that was made; its token opens with this key. */
  async function kept(out: string, secretKey = SECRET_KEY) {
    const { id, ...told } = JSON.parse(out) as { id: string; number: string; provider: string };
    const { rows } = await database.pool.query<{
      org_id: string;
      number: string;
      provider: string;
      phone_number_id: string | null;
      credentials: Buffer | null;
    }>('SELECT org_id, number, provider, phone_number_id, credentials FROM chat_numbers WHERE id = $1', [id]);
    const { org_id, credentials, phone_number_id, ...row } = rows[0] ?? assert.fail('there is no such number');
    assert.equal(org_id, orgId);
    assert.deepEqual(told, row, 'id, number and provider are told, and nothing else');
    return { ...row, phone_number_id, token: credentials && chatSeal(secretKey).open(credentials, id).toString() };
  }

  it('connects a number of each provider', async () => {
    const twilio = await add(['--organization', orgId, '--number', '+1 202 555 0142', '--provider', 'twilio']);
    assert.equal(twilio.err, '');
    const of = { number: '+12025550142', provider: 'twilio' };
    assert.deepEqual(await kept(twilio.out), { ...of, phone_number_id: null, token: null });
    const options = ['--number', '+12025550143', '--provider', 'meta', '--phone-number-id', '123', '--token', TOKEN];
    const meta = await add(['--organization', orgId, ...options]);
    assert.equal(meta.err, '');
    assert.deepEqual(await kept(meta.out), {
      number: '+12025550143',
      provider: 'meta',
      phone_number_id: '123',
      token: TOKEN,
    });
    const again = await add(['--organization', orgId, ...options]);
    assert.deepEqual(again, { code: 1, out: '', err: 'number: is connected already\n' });
  });

  it('lists, gives templates to and disconnects numbers', async () => {
    const of = ['--organization', orgId, '--number', '+12025550145'];
    const env = { DATABASE_URL: database.url, SECRET_KEY };
    const template = `receipt,en_US,HX${'0'.repeat(32)},1,name`;
    const made = await add([...of, '--provider', 'twilio', '--template', template]);
    assert.equal(made.err, '');
    const { id } = JSON.parse(made.out) as { id: string };
    const more = `receipt,de,HX${'1'.repeat(32)}`;
    const added = await command(['template', 'add', ...of, '--template', more], env);
    assert.equal(added.err, '');
    assert.deepEqual((JSON.parse(added.out) as { templates: unknown }).templates, [
      { name: 'receipt', language: 'de', content_sid: `HX${'1'.repeat(32)}`, variables: [] },
      { name: 'receipt', language: 'en_US', content_sid: `HX${'0'.repeat(32)}`, variables: ['1', 'name'] },
    ]);
    const listed = async () => {
      const { out } = await command(['number', 'list', '--organization', orgId], env);
      const { numbers } = JSON.parse(out) as { numbers: { id: string; org_id: string; verified_by: string }[] };
      return numbers.find((number) => number.id === id);
    };
    const found = await listed();
    assert.deepEqual([found?.org_id, found?.verified_by], [orgId, 'operator']);
    const removed = await command(['number', 'remove', ...of], env);
    assert.deepEqual(JSON.parse(removed.out), { id, number: '+12025550145' });
    assert.equal(await listed(), undefined);
    const again = await command(['number', 'remove', ...of], env);
    assert.deepEqual(again, { code: 1, out: '', err: 'number: the organization has no number +12025550145\n' });
  });

  it('seals a token with the key of the npm start whose database it is', async (t) => {
    const home = await temporaryFolder(t);
    await writeFile(join(home, 'dev.json'), JSON.stringify({ database_url: database.url }));
    await writeFile(join(home, 'secrets.json'), JSON.stringify({ secret_key: 'x'.repeat(40) }));
    const options = ['--number', '+12025550144', '--provider', 'twilio', '--token', TOKEN];
    const { out, err } = await add(['--organization', orgId, ...options], { SENDWRIGHT_HOME: home });
    assert.equal(err, '');
    assert.equal((await kept(out, 'x'.repeat(40))).token, TOKEN);
  });

  const NUMBER = ['--number', '+12025550149'];
  for (const [what, args, sentence, exitCode = 1] of [
    ['no number', ['--provider', 'twilio'], /^required option '--number <number>' not specified\n/, 2],
    ['no provider', NUMBER, /^required option '--provider <provider>' not specified\n/, 2],
    [
      'an unknown provider',
      [...NUMBER, '--provider', 'vonage'],
      /argument 'vonage' is invalid\. Allowed choices are twilio, meta\.\n/,
      2,
    ],
    ['a number that is none', ['--number', '+1', '--provider', 'twilio'], /^number: is not a telephone number/],
    [
      'Meta without its id',
      [...NUMBER, '--provider', 'meta'],
      /^phone_number_id: is required when provider is meta\n$/,
    ],
    [
      'an id that is none',
      [...NUMBER, '--provider', 'meta', '--phone-number-id', 'a/b'],
      /^phone_number_id: must be 1 to 64/,
    ],
    [
      'an id that is not used',
      [...NUMBER, '--provider', 'twilio', '--phone-number-id', '1'],
      /^phone_number_id: is not used by twilio\n$/,
    ],
    ['a token with a blank', [...NUMBER, '--provider', 'twilio', '--token', 'a b'], /^token: must be 1 to 2048/],
    [
      'an empty token',
      [...NUMBER, '--provider', 'twilio', '--token', ''],
      /^option '--token <token>' argument '' is invalid\. It must not be empty\.\n/,
      2,
    ],
  ] as const) {
    it(`says what is wrong: ${what}`, async () => {
      const { code, out, err } = await add(['--organization', orgId, ...args]);
      assert.deepEqual([code, out], [exitCode, '']);
      assert.match(err, sentence);
    });
  }

  it('says what is wrong: an organization that there is not', async () => {
    const absent = `org_${'0'.repeat(26)}`;
    const { err } = await add(['--organization', absent, ...NUMBER, '--provider', 'twilio']);
    assert.match(err, /^organization: there is no organization org_0+\n$/);
  });
});
