metadata description = 'One subscription of a topic, for everything or for what a SQL filter lets through.'

param serviceBusName string

param topicName string

param name string

@description('What is let through: a condition on the properties of a message. Empty: everything.')
param condition string = ''

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: serviceBusName
}

resource topic 'Microsoft.ServiceBus/namespaces/topics@2024-01-01' existing = {
  parent: serviceBus
  name: topicName
}

resource place 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2024-01-01' = {
  parent: topic
  name: name
  properties: {
    deadLetteringOnMessageExpiration: true
    defaultMessageTimeToLive: 'P14D'
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
  }
}

// A subscription is born with the rule $Default, which lets everything through: this one takes its place.
resource rule 'Microsoft.ServiceBus/namespaces/topics/subscriptions/rules@2024-01-01' = if (!empty(condition)) {
  parent: place
  name: '$Default'
  properties: {
    filterType: 'SqlFilter'
    sqlFilter: {
      sqlExpression: condition
    }
  }
}
