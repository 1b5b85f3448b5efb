import { Type } from 'typebox';
import { KEY_NAME_LENGTH } from '../../domain/limits.ts';
import { changeKeyName, requireKey } from '../../accounts/keys.ts';
import { act } from '../act.ts';
import { BLANK, field, Form, FormProblem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, idOf, page, type PageRow } from '../page.ts';
import { CRUMBS, PATH } from './keys.tsx';

const show = page(Type.Object({}), (context) => editPage(context, BLANK));

const Name = Type.Object({
  name: Type.Optional(Type.String({ maxLength: KEY_NAME_LENGTH, 'x-rule': 'one-line' })),
});

const rename = action(Name, {
  renderForm: editPage,
  run: (context, { name = null }) =>
    act(context, {
      action: 'keys.update',
      run: () => changeKeyName(context.pool, context.organization.id, idOf(context), name),
      target: idOf(context),
      detail: { name },
      next: PATH,
      flash: 'The API key was renamed.',
    }),
});

export const rows: readonly PageRow[] = [
  ['GET', `${PATH}/:id/edit`, 'owner', show],
  ['POST', `${PATH}/:id/edit`, 'owner', rename],
];

async function editPage(context: Context, formState: FormState): Promise<Html> {
  const { id, name } = await requireKey(context.pool, context.organization.id, idOf(context));
  return (
    <Layout context={context} title="Edit API key" crumbs={CRUMBS}>
      <Form visit={context} action={`${PATH}/${id}/edit`} class="card">
        <FormProblem formState={formState} />
        {field(formState, 'name', 'Name', {
          value: name ?? '',
          hint: 'Optional. Helps you recognize this key. Its permissions cannot be changed: create another key instead.',
          autocomplete: 'off',
        })}
        <button class="primary">Save name</button>
      </Form>
    </Layout>
  );
}
