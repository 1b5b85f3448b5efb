import { type Client, WorkflowNotFoundError } from '@temporalio/client';

/** What Temporal knows of a workflow by its id: of its latest run, and nothing once its history was deleted. */
export async function describeWorkflow({ workflow }: Client, id: string): Promise<'running' | 'closed' | 'missing'> {
  try {
    const { status } = await workflow.getHandle(id).describe();
    return status.name === 'RUNNING' || status.name === 'PAUSED' ? 'running' : 'closed';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'missing';
    throw error;
  }
}
