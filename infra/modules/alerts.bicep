metadata description = 'Rules that tell an operator what must not wait, from the metrics that the parts send.'

@description('Names of the rules begin with it.')
param prefix string

param location string

param workspaceId string

@description('Ids of the action groups that are told. None: the alerts stand in the portal and nobody is told.')
param actionGroupIds array = []

@description('The metrics are described in docs/operations.md. Of what several processes tell, the largest counts.')
var alerts = [
  {
    name: 'nobody-leads'
    says: 'No scheduler works: nothing that is due starts'
    severity: 1
    metric: 'matoolkit.scheduler.lead'
    only: 'true'
    operator: 'LessThan'
    threshold: 0
  }
  {
    name: 'phases-overdue'
    says: 'Phases are past their time and have not started'
    severity: 1
    metric: 'matoolkit.phases.overdue'
    only: 'true'
    operator: 'GreaterThan'
    threshold: 0
  }
  {
    name: 'orchestrator-behind'
    says: 'Messages wait for an orchestrator for over five minutes'
    severity: 1
    metric: 'matoolkit.queue.oldest'
    only: 'tostring(Properties.topic) != "worker-jobs"'
    operator: 'GreaterThan'
    threshold: 300
  }
  {
    name: 'outbox-behind'
    says: 'Messages are written and have not been sent for over five minutes'
    severity: 1
    metric: 'matoolkit.outbox.age'
    only: 'true'
    operator: 'GreaterThan'
    threshold: 300
  }
  {
    name: 'members-stuck'
    says: 'Members do not move'
    severity: 2
    metric: 'matoolkit.members.stuck'
    only: 'true'
    operator: 'GreaterThan'
    threshold: 0
  }
  {
    name: 'dead-messages'
    says: 'Messages could not be handled and were put aside'
    severity: 2
    metric: 'matoolkit.dead_messages'
    only: 'true'
    operator: 'GreaterThan'
    threshold: 0
  }
  {
    name: 'runbooks-faulty'
    says: 'Runbooks report an error'
    severity: 3
    metric: 'matoolkit.runbooks.faulty'
    only: 'true'
    operator: 'GreaterThan'
    threshold: 0
  }
]

resource rules 'Microsoft.Insights/scheduledQueryRules@2022-06-15' = [for alert in alerts: {
  name: '${prefix}-${alert.name}'
  location: location
  kind: 'LogAlert'
  properties: {
    displayName: alert.says
    severity: alert.severity
    enabled: true
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    scopes: [
      workspaceId
    ]
    // The table is made with the first metric, and rules are there before it.
    skipQueryValidation: true
    criteria: {
      allOf: [
        {
          query: 'AppMetrics | where Name == "${alert.metric}" and ${alert.only} | summarize Level = max(Max) by bin(TimeGenerated, 5m)'
          metricMeasureColumn: 'Level'
          timeAggregation: 'Maximum'
          operator: alert.operator
          threshold: alert.threshold
          failingPeriods: {
            numberOfEvaluationPeriods: 1
            minFailingPeriodsToAlert: 1
          }
        }
      ]
    }
    autoMitigate: true
    actions: {
      actionGroups: actionGroupIds
    }
  }
}]
