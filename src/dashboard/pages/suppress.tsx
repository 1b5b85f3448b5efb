import { Type } from 'typebox';
import { ServiceError } from '../../domain/errors.ts';
import { SUPPRESSIONS_PER_REQUEST } from '../../domain/limits.ts';
import { suppress } from '../../accounts/suppressions.ts';
import { act } from '../act.ts';
import { type AddressList, readAddresses, type RefusedLine } from '../address-list.ts';
import { Section, Table } from '../elements.tsx';
import { BLANK, field, FileInto, Form, FormProblem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, page, type PageRow, Redirect } from '../page.ts';
import { PATH } from './suppressions.tsx';
import { chunksOf } from '../../lib/group.ts';
import { formatNumber } from '../../lib/text.ts';

/** Limits of one form. */
const MAX_ADDRESSES = 10_000;
const MAX_FORM_BYTES = 3 * 1_048_576;
/** The maximum number of refused lines that are shown. */
const MAX_SHOWN = 100;

const CRUMBS = [{ path: PATH, name: 'Suppressions' }];

const showAdd = page(Type.Object({ addresses: Type.Optional(Type.String()) }), async (context) =>
  addPage(context, BLANK, context.query.addresses),
);

const add = action(Type.Object({ addresses: Type.String() }), {
  bodyLimit: MAX_FORM_BYTES,
  renderForm: addPage,
  run: async (context, { addresses: text }) => {
    const read = await readAddresses(text);
    refuseWhole(read);
    return act(context, {
      action: 'suppressions.create',
      run: () => suppressAll(context, read.addresses),
      target: ({ only }) => only,
      detail: ({ added }) => ({ addresses: read.addresses.length, added, refused: read.refused.length }),
      next: ({ added }) => {
        const flash = addedMessage(added, read.addresses.length - added);
        if (read.refused.length === 0) return new Redirect(PATH, { flash });
        return refusedPage(context, flash, read.refused);
      },
    });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', `${PATH}/add`, 'member', showAdd],
  ['POST', `${PATH}/add`, 'member', add],
];

/** @throws ServiceError validation_error for a list that is too long or has no valid address */
function refuseWhole({ addresses, refused: [first] }: AddressList): void {
  if (addresses.length > MAX_ADDRESSES) {
    const max = formatNumber(MAX_ADDRESSES);
    const count = formatNumber(addresses.length);
    throw new ServiceError('validation_error', `contains ${count} addresses; send ${max} at a time`, 'addresses');
  }
  if (addresses.length > 0) return;
  const problem = first ? `line ${first.line}: ${first.problem}` : 'contains no address';
  throw new ServiceError('validation_error', problem, 'addresses');
}

/** @returns the number of new entries, and the id of the entry if there is only one address */
async function suppressAll(
  { organization, deps }: Context,
  addresses: readonly string[],
): Promise<{ added: number; only: string | null }> {
  let total = 0;
  let only: string | null = null;
  for (const chunk of chunksOf(addresses, SUPPRESSIONS_PER_REQUEST)) {
    const { added, suppressions } = await suppress(deps, organization.id, chunk);
    total += added;
    if (addresses.length === 1) only = suppressions[0]?.id ?? null;
  }
  return { added: total, only };
}

function addedMessage(added: number, before: number): string {
  const there = before === 0 ? '' : ` ${formatNumber(before)} ${before === 1 ? 'was' : 'were'} on the list already.`;
  return `${formatNumber(added)} ${added === 1 ? 'address was' : 'addresses were'} added.${there}`;
}

function addPage(context: Context, formState: FormState, value?: string): Html {
  return (
    <Layout context={context} title="Add addresses" crumbs={CRUMBS}>
      {addForm(context, formState, value)}
    </Layout>
  );
}

function addForm(context: Context, formState: FormState, value?: string): Html {
  return (
    <Form visit={context} action={`${PATH}/add`} class="card">
      <FormProblem formState={formState} />
      {field(formState, 'addresses', 'Addresses', {
        value,
        rows: 10,
        hint: `One in each line, or CSV with a column “email”; up to ${formatNumber(MAX_ADDRESSES)} at a time. Nothing is sent to them from then on. Other columns of the CSV are ignored.`,
        required: true,
      })}
      <FileInto label="Or from a file" into="addresses" accept=".csv,.txt,.tsv,text/csv,text/plain" />
      <button class="primary">Add addresses</button>
    </Form>
  );
}

function refusedPage(context: Context, flash: string, refused: readonly RefusedLine[]): Html {
  const count = formatNumber(refused.length);
  return (
    <Layout context={context} title="Addresses that were refused" crumbs={CRUMBS}>
      <p class="flash" role="status" safe>
        {flash}
      </p>
      <p class="notice warning" safe>
        {refused.length === 1 ? 'One was refused.' : `${count} were refused.`}
      </p>
      <Table caption="Refused addresses" columns={['Line', 'Text', 'Problem']}>
        {refused.slice(0, MAX_SHOWN).map(({ line, text, problem }) => (
          <tr>
            <td safe>{String(line)}</td>
            <td safe>{text}</td>
            <td safe>{problem}</td>
          </tr>
        ))}
      </Table>
      {refused.length > MAX_SHOWN && <p class="hint">{`These are the first ${MAX_SHOWN}.`}</p>}
      <Section title="Correct and add them">
        {addForm(context, BLANK, refused.map(({ text }) => text).join('\n'))}
      </Section>
    </Layout>
  );
}
